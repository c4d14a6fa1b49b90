//! Reads a program, maps it over an axis of 8 and prints the result, from Rust.
//!
//!     rustc vmap.rs -L $(python -m weft --lib-dir) -l weft
use std::os::raw::{c_char, c_int};
use std::{ptr, slice, str};

#[repr(C)]
#[derive(Clone, Copy)]
struct Text {
    data: *const c_char,
    size: usize,
}

impl Text {
    fn new(s: &str) -> Text {
        Text { data: s.as_ptr() as *const c_char, size: s.len() }
    }
    /// As long as what it belongs to.
    unsafe fn to_string(self) -> String {
        let bytes = slice::from_raw_parts(self.data as *const u8, self.size);
        str::from_utf8(bytes).expect("UTF-8").to_owned()
    }
}

/// What is behind handles is known to the library alone.
enum Graph {}
enum OwnedText {}
enum Failure {}

extern "C" {
    fn weft_graph_parse(text: Text, graph: *mut *mut Graph) -> *mut Failure;
    fn weft_graph_print(graph: *const Graph, text: *mut *mut OwnedText) -> *mut Failure;
    fn weft_vmap(
        graph: *const Graph, axes: *const i32, num_inputs: usize, size: i64, mapped: *mut *mut Graph,
    ) -> *mut Failure;
    fn weft_graph_free(graph: *mut Graph);
    fn weft_string_text(string: *const OwnedText) -> Text;
    fn weft_string_free(string: *mut OwnedText);
    fn weft_error_get_kind(error: *const Failure) -> c_int;
}

fn check(failure: *mut Failure) {
    if !failure.is_null() {
        panic!("error of kind {}", unsafe { weft_error_get_kind(failure) });
    }
}

fn main() {
    let program = "{ lambda ; a:f32[3] b:f32[]. let c:f32[3] = mul a b in (c,) }";
    unsafe {
        let (mut graph, mut mapped, mut text) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        check(weft_graph_parse(Text::new(program), &mut graph));
        check(weft_vmap(graph, [0, -1].as_ptr(), 2, 8, &mut mapped));
        check(weft_graph_print(mapped, &mut text));
        println!("{}", weft_string_text(text).to_string());
        weft_string_free(text);
        weft_graph_free(mapped);
        weft_graph_free(graph);
    }
}
