// Files of arrays: what is written is read back, malformed ones and mutants of good ones are
// refused.
#include "weft/arrays.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "weft/format.h"

namespace weft::test {

namespace {

std::string temporary_file() {
  static const std::string path = cat("/tmp/weft-arrays-test-", getpid());
  return path;
}

void write_file(std::string_view content) {
  std::ofstream(temporary_file(), std::ios::binary | std::ios::trunc) << content;
}

std::string read_file() {
  std::ifstream in(temporary_file(), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A file with this header and four bytes of elements.
std::vector<NamedArray> read_with_header(std::string_view header) {
  std::string size(8, '\0');
  size[0] = static_cast<char>(header.size());
  write_file(cat(size, header, "abcd"));
  return read_arrays(temporary_file());
}

NamedArray array_of(std::string name, std::string_view type, std::string_view bytes) {
  return {std::move(name), parse_type(type), {bytes.begin(), bytes.end()}};
}

}  // namespace

TEST(arrays_are_read_as_they_were_written) {
  std::vector<NamedArray> arrays = {
      array_of("w", "f32[1,2]", "abcdefgh"),
      array_of("none", "i8[0,3]", ""),
      array_of("quotes \" \\ \n and \xc3\xa4", "bool[]", std::string_view("\1", 1)),
      array_of("", "bf16[2]", "abcd"),
  };
  write_arrays(temporary_file(), arrays);
  std::vector<NamedArray> again = read_arrays(temporary_file());
  CHECK_EQ(again.size(), arrays.size());
  for (size_t i = 0; i < again.size(); ++i) {
    CHECK_EQ(again[i].name, arrays[i].name);
    CHECK(again[i].type == arrays[i].type && again[i].bytes == arrays[i].bytes);
  }
  CHECK(&find_array(again, "none") == &again[1]);
  CHECK_THROWS(kValue, "expected one of w, none, ", find_array(again, "v"));
  write_arrays(temporary_file(), {});
  CHECK(read_arrays(temporary_file()).empty());
}

TEST(arrays_are_written_as_others_read_them) {
  std::vector<NamedArray> arrays = {array_of("a\t", "i32[1]", "abcd")};
  write_arrays(temporary_file(), arrays);
  std::string header = R"({"a\u0009":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}})";
  header.resize(64, ' ');
  CHECK_EQ(read_file(), cat(std::string_view("\x40\0\0\0\0\0\0\0", 8), header, "abcd"));
}

TEST(arrays_of_others_are_read) {
  std::vector<NamedArray> arrays = read_with_header(
      " {\"__metadata__\" : {\"a\":\"b\"}, \"\\u00e4\\ud83d\\ude00\\/\": { \"data_offsets\":[2, 4] "
      ","
      "\"shape\" :[ ],\"dtype\":\"F16\"}\n} ");
  CHECK(arrays.size() == 1 && arrays[0].type == parse_type("f16[]"));
  CHECK_EQ(arrays[0].name, std::string("\xc3\xa4\xf0\x9f\x98\x80/"));
  CHECK(arrays[0].bytes == (std::vector<char>{'c', 'd'}));
}

TEST(arrays_that_are_malformed) {
  auto refused = [](std::string_view header, std::string_view words) {
    CHECK_THROWS(kParse, words, read_with_header(header));
  };
  refused("[]", "expected { at byte 8 of /tmp/");
  refused("{\"a\"}", "expected :");
  refused("{\"a", "expected the end of a string");
  refused("{\"\\x\":1}", "expected a character that JSON has");
  refused("{\"\\ud800a\":1}", "expected the second half of a pair");
  refused("{} {", "expected the end of the header");
  refused("{\"a\":{\"dtype\":\"F3\",\"shape\":[],\"data_offsets\":[0,4]}}", "not \"F3\"");
  refused("{\"a\":{\"shape\":[],\"data_offsets\":[0,4]}}", "not \"\"");
  refused("{\"a\":{\"kind\":1}}", "expected dtype, shape or data_offsets");
  for (const char* offsets : {"[0,5]", "[4,0]", "[1,5]", "[0,3]", "[0]", "[]", "[0,4,4]"})
    refused(cat("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":", offsets, "}}"),
            "expected offsets within 4 bytes for f32[1] of a");
  refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999],\"data_offsets\":[0,4]}}",
          "expected a number of bytes or elements");
  refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", "expected a number");
  write_file("abc");
  CHECK_THROWS(kParse, "is none", read_arrays(temporary_file()));
  write_file(std::string(20, '\xff'));
  CHECK_THROWS(kParse, "is none", read_arrays(temporary_file()));
  CHECK_THROWS(kValue, "cannot read /nowhere/a", read_arrays("/nowhere/a"));
}

TEST(arrays_that_are_not_written) {
  auto refused = [](ErrorKind kind, std::vector<NamedArray> arrays, std::string_view words) {
    try {
      write_arrays(temporary_file(), arrays);
    } catch (const Error& error) {
      CHECK(error.kind() == kind && std::string_view(error.what()).find(words) != words.npos);
      return;
    }
    CHECK(!"written");
  };
  NamedArray a = array_of("a", "f32[1]", "abcd");
  refused(ErrorKind::kValue, {a, a}, "got a twice");
  refused(ErrorKind::kValue, {array_of("a", "f32[1]", "abc")},
          "expected 4 bytes for f32[1]; got 3");
  refused(ErrorKind::kDtype, {array_of("a", "i4[1]", "a")}, "a dtype that safetensors has");
  CHECK_THROWS(kValue, "can be written; got /nowhere/a", write_arrays("/nowhere/a", {}));
}

TEST(arrays_survive_mutants) {
  std::vector<NamedArray> arrays = {array_of("w\n", "f32[1,2]", "abcdefgh"),
                                    array_of("v", "i8[3]", "abc")};
  write_arrays(temporary_file(), arrays);
  std::string good = read_file();
  std::mt19937_64 random(static_cast<uint64_t>(number_from_environment("WEFT_SEED", 0)));
  for (int64_t i = number_from_environment("WEFT_MUTATIONS", 3000); i > 0; --i) {
    std::string bad = good;
    for (size_t edits = random() % 3 + 1; edits > 0; --edits) {
      size_t at = random() % bad.size();
      if (random() % 4 == 0) {
        bad.erase(at, random() % 4);
      } else {
        bad[at] = "0123456789[]{}\",:\\u -"[random() % 21];
      }
      if (bad.empty()) break;
    }
    write_file(bad);
    try {
      for (const NamedArray& array : read_arrays(temporary_file()))
        CHECK(array.bytes.size() <= bad.size());
    } catch (const Error& error) { CHECK(error.kind() != ErrorKind::kInternal); }
  }
  std::remove(temporary_file().c_str());
}

}  // namespace weft::test
