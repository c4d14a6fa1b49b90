// What the page knows: the data of the programs, decoded as it is asked for, and how a long list of
// operations is put in groups. Nothing here touches the document.

async function unpacked(base64) {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return JSON.parse(await new Response(stream).text());
}

// ---- Numbers as text

function shortNumber(x, units, base) {
  if (x === null || !isFinite(x)) return '∞';
  let i = 0;
  while (Math.abs(x) >= base && i < units.length - 1) {
    x /= base;
    i++;
  }
  const digits = Math.abs(x) >= 100 || Number.isInteger(x) ? 0 : Math.abs(x) >= 10 ? 1 : 2;
  return `${x.toFixed(digits)}${units[i]}`;
}
const showCount = (x) => shortNumber(x, ['', ' k', ' M', ' G', ' T', ' P', ' E'], 1000);
const showBytes = (x) => shortNumber(x, [' B', ' KiB', ' MiB', ' GiB', ' TiB', ' PiB'], 1024);
const showTime = (ns) => shortNumber(ns, [' ns', ' µs', ' ms', ' s'], 1000);
const showWhole = (x) => (x === null ? '∞' : Math.round(x).toLocaleString('en-US'));
const plural = (n, word) => `${showWhole(n)} ${word}${n === 1 ? '' : 's'}`;
const baseName = (file) => file.slice(file.lastIndexOf('/') + 1);

// What an operation is, for colours.
const CATEGORIES = {
  product: 'dot_general conv_general ragged_dot cholesky triangular_solve lu qr eig svd fft',
  reduction: 'reduce arg cum sort top_k',
  random: 'random_ threefry rng_',
  control: 'scan while cond jit pjit call custom_ remat checkpoint closed_call kernel fusion ' +
    'shard_map composite',
  movement: 'broadcast reshape transpose slice dynamic gather scatter concatenate pad squeeze ' +
    'expand_dims rev select_and copy iota split convert bitcast sharding all_ psum pp',
};
const STARTS = Object.entries(CATEGORIES).map(([name, starts]) => [name, starts.split(' ')]);
function categoryOf(name) {
  for (const [category, starts] of STARTS) {
    if (starts.some((start) => name.startsWith(start))) return category;
  }
  return 'elementwise';
}

const MOST_ITEMS = 48; // shown of a list of operations without groups

class Model {
  constructor(page) {
    const data = page.programs;
    this.page = page;
    this.types = data.types.map(([text, dtype, bytes]) => ({ text, dtype, bytes }));
    this.places = data.places.map(([file, line, fun, scope, of]) => {
      return { file, line, fun, scope, of };
    });
    this.literals = data.literals;
    this.kinds = data.kinds.map((k) => {
      const [name, attrs, graphs, arity, results, flops, functions, bytes, ns] = k;
      return {
        ...{ name, attrs, graphs, arity, results, flops, functions, bytes, ns },
        category: categoryOf(name),
        trips: graphs.length ? Number(/\blength=(\d+)/.exec(attrs)?.[1] ?? 1) : 1,
        label: /\bname=("[^"]*"|\S+)/.exec(attrs)?.[1] ?? '',
        split: /sharding<(.*?);/.exec(attrs)?.[1] ?? '',
      };
    });
    this.sources = data.graphs;
    this.programs = data.programs;
    this.decoded = new Map();
    this.grouped = new Map();
  }

  // A graph with its operations in arrays, and sums over the first i of them.
  graph(number) {
    let g = this.decoded.get(number);
    if (!g) {
      g = this.decode(number);
      this.decoded.set(number, g);
    }
    return g;
  }

  decode(number) {
    const source = this.sources[number];
    const kinds = [], places = [], starts = [0], operands = [], firsts = [];
    let value = source.inputs.length;
    for (let i = 0; i < source.ops.length; ) {
      const kind = this.kinds[source.ops[i]];
      kinds.push(source.ops[i]);
      places.push(source.ops[i + 1]);
      firsts.push(value);
      for (let k = 0; k < kind.arity; k++) {
        const x = source.ops[i + 2 + k];
        operands.push(x > 0 ? value - x : x);
      }
      starts.push(operands.length);
      value += kind.results.length;
      i += 2 + kind.arity;
    }
    const size = kinds.length;
    const g = {
      number, size, starts, operands, firsts,
      kinds: Uint32Array.from(kinds),
      places: Uint32Array.from(places),
      inputs: source.inputs,
      outputs: source.outputs,
      consts: source.consts,
      peak: source.peak,
      held: source.held,
      chain: source.chain,
      numValues: value,
      producers: new Int32Array(value).fill(-1),
      live: new Float64Array(size),
      critical: new Uint8Array(size),
      sums: { ns: new Float64Array(size + 1), flops: new Float64Array(size + 1),
              bytes: new Float64Array(size + 1) },
    };
    let live = 0, at = 0;
    for (let i = 0; i < size; i++) {
      const kind = this.kinds[kinds[i]];
      for (let k = 0; k < kind.results.length; k++) g.producers[firsts[i] + k] = i;
      g.live[i] = live += source.live[i];
      for (const name of ['ns', 'flops', 'bytes']) {
        g.sums[name][i + 1] = g.sums[name][i] + (kind[name] ?? 0);
      }
    }
    for (const step of source.critical) g.critical[(at += step)] = 1;
    return g;
  }

  kind(g, i) {
    return this.kinds[g.kinds[i]];
  }
  place(g, i) {
    return this.places[g.places[i]];
  }
  typeOf(g, value) {
    if (value < g.inputs.length) return this.types[g.inputs[value]];
    const op = g.producers[value];
    return this.types[this.kind(g, op).results[value - g.firsts[op]]];
  }

  // Names of values as in printed programs: a, b, ..., "_" for results that nothing takes.
  names(g) {
    if (g.names) return g.names;
    const used = new Uint8Array(g.numValues);
    used.fill(1, 0, g.inputs.length);
    for (const list of [g.operands, g.outputs]) for (const v of list) if (v >= 0) used[v] = 1;
    const reserved = new Set(['in', 'inf', 'let', 'nan', 'infj', 'nanj']);
    let next = 0;
    g.names = Array.from(used, (is) => {
      if (!is) return '_';
      let name;
      do name = letters(next++);
      while (reserved.has(name));
      return name;
    });
    return g.names;
  }
  valueName(g, v) {
    return v < 0 ? this.literals[-v - 1] : this.names(g)[v];
  }

  // The graphs that a program runs, itself first, each with where it is held first.
  reached(root) {
    const found = new Map([[root, null]]);
    for (const number of found.keys()) {
      const g = this.graph(number);
      const seen = new Set(g.kinds);
      const holders = new Set([...seen].filter((k) => this.kinds[k].graphs.length));
      if (!holders.size) continue;
      for (let i = 0; i < g.size; i++) {
        if (!holders.has(g.kinds[i])) continue;
        for (const [label, inner] of this.kind(g, i).graphs) {
          if (!found.has(inner)) found.set(inner, { graph: number, op: i, label });
        }
      }
    }
    return found;
  }

  // How often each of these graphs runs in a run of the program, where that is known: loops whose
  // length follows from values, and branches, count once.
  runs(root) {
    const reached = this.reached(root), calls = new Map();
    for (const number of reached.keys()) {
      const g = this.graph(number);
      for (let i = 0; i < g.size; i++) {
        for (const [, inner] of this.kind(g, i).graphs) {
          if (!calls.has(inner)) calls.set(inner, []);
          calls.get(inner).push([number, this.kind(g, i).trips]);
        }
      }
    }
    const known = new Map([[root, 1]]);
    const of = (number) => {
      if (!known.has(number)) {
        known.set(number, calls.get(number).reduce((sum, [n, trips]) => sum + trips * of(n), 0));
      }
      return known.get(number);
    };
    for (const number of reached.keys()) of(number);
    return known;
  }

  // What is shown of the operations from .. to of a graph: operations and groups of them, in order.
  // A group is a stretch of the program, so that what is between groups has no circles.
  items(number, from, to) {
    const key = `${number}:${from}:${to}`;
    let items = this.grouped.get(key);
    if (!items) {
      items = this.group(this.graph(number), from, to);
      this.grouped.set(key, items);
    }
    return items;
  }

  group(g, from, to) {
    if (to - from <= MOST_ITEMS) return ops(from, to);
    const items = this.parts(g, from, to, true);
    return this.atMost(items.length > 1 ? items : this.stretches(g, from, to), g);
  }

  // A sequence that comes again and again, each of its turns a group, and what is around it.
  parts(g, from, to, isWhole = false) {
    if (to - from <= 6) return ops(from, to);
    const repeat = to - from > MOST_ITEMS ? this.repeat(g, from, to) : null;
    if (!repeat) {
      const items = this.stretches(g, from, to);
      return isWhole || items.length <= 6 ? items : [{ from, to, title: this.title(g, from, to) }];
    }
    const { start, period, times } = repeat, end = start + period * times;
    const title = this.title(g, start, start + period);
    const isAll = start - from + to - end < period;
    if (isAll && times > 2 * MOST_ITEMS) return this.chunks(g, from, to);
    const turns = times > 16 && !isAll ? [{ from: start, to: end, title: `${title}  ×${times}` }]
      : range(times).map((k) => ({
        from: start + k * period, to: start + (k + 1) * period, title, part: [k + 1, times],
      }));
    return this.parts(g, from, start).concat(turns, this.parts(g, end, to));
  }

  // Stretches of one function of the user's; short ones stay as they are.
  stretches(g, from, to) {
    const keyOf = (i) => {
      const p = this.place(g, i);
      return `${p.file}\n${p.fun}\n${p.scope}\n${p.of}`;
    };
    const items = [];
    for (let a = from; a < to; ) {
      let b = a + 1;
      const key = keyOf(a);
      while (b < to && keyOf(b) === key) b++;
      if (b - a === to - from) return this.chunks(g, a, b);
      if (b - a >= 4) items.push({ from: a, to: b, title: this.title(g, a, b) });
      else for (let i = a; i < b; i++) items.push({ from: i, to: i + 1 });
      a = b;
    }
    return items;
  }

  // What is all alike, in groups of equal size where it is long.
  chunks(g, from, to) {
    if (to - from <= 2 * MOST_ITEMS) return ops(from, to);
    const each = Math.ceil((to - from) / MOST_ITEMS), items = [];
    for (let a = from; a < to; a += each) {
      const b = Math.min(to, a + each);
      items.push({ from: a, to: b, title: this.title(g, a, b) });
    }
    return items;
  }

  // Neighbours put together until there are few.
  atMost(items, g) {
    if (items.length <= 2 * MOST_ITEMS) return items;
    const each = Math.ceil(items.length / MOST_ITEMS);
    const out = [];
    for (let i = 0; i < items.length; i += each) {
      const [a, b] = [items[i].from, items[Math.min(i + each, items.length) - 1].to];
      out.push(b - a === 1 ? items[i] : { from: a, to: b, title: this.title(g, a, b) });
    }
    return out;
  }

  // The functions that most of the operations are of, in the order of the program.
  title(g, from, to) {
    const counts = new Map();
    const step = Math.ceil((to - from) / 1000);
    for (let i = from; i < to; i += step) {
      const p = this.place(g, i);
      const of = p.of === 'cotangent' ? '∂ ' : '';
      const name = of + (p.scope.split('/').pop() || p.fun || 'operations');
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    const few = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 3).map(([name]) => name);
    const names = [...counts.keys()].filter((name) => few.includes(name));
    const after = names.every((name) => name.startsWith('∂ '));
    const text = after ? `∂ ${names.map((name) => name.slice(2)).join(', ')}` : names.join(', ');
    return text + (counts.size > 3 ? ', …' : '');
  }

  // The stretch that consists of one and the same sequence of operations several times, if there is
  // one that matters: distances between equal operations tell how long it may be.
  repeat(g, from, to) {
    const last = new Map(), distances = new Map();
    for (let i = from; i < to; i++) {
      const before = last.get(g.kinds[i]);
      if (before !== undefined) {
        distances.set(i - before, (distances.get(i - before) ?? 0) + 1);
      }
      last.set(g.kinds[i], i);
    }
    const likely = [...distances].filter(([d]) => d >= 6 && d <= (to - from) / 2);
    likely.sort((a, b) => b[1] * b[0] - a[1] * a[0]);
    let best = null;
    for (const [period] of likely.slice(0, 24)) {
      for (let i = from; i + period < to; ) {
        let end = i;
        while (end + period < to && g.kinds[end] === g.kinds[end + period]) end++;
        const covered = end + period - i;
        const better = !best || covered > 1.05 * best.covered;
        if (end - i >= period && covered > 0.12 * (to - from) && better) {
          best = { start: i, end: end + period, period, covered };
        }
        i = end + 1;
      }
    }
    return best && this.narrowest(g, best);
  }

  // Of the places where such a sequence may be cut, the one that fewest values cross.
  narrowest(g, { start, end, period }) {
    const times = Math.floor((end - start) / period);
    const room = Math.min(period, end - start - period * Math.max(2, times - 1) + 1);
    const crossing = new Int32Array(room + 1);
    for (let i = start; i < end; i++) {
      for (let k = g.starts[i]; k < g.starts[i + 1]; k++) {
        const v = g.operands[k];
        const made = v < 0 ? -1 : g.producers[v];
        if (made < 0) continue;
        const a = Math.max(made - start + 1, 0), b = Math.min(i - start, room - 1);
        if (a <= b) {
          crossing[a]++;
          crossing[b + 1]--;
        }
      }
    }
    let best = 0, fewest = Infinity, sum = 0;
    for (let s = 0; s < room; s++) {
      sum += crossing[s];
      const lost = Math.floor((end - start - s) / period) < times ? 0.5 : 0;
      if (sum + lost < fewest) {
        fewest = sum + lost;
        best = s;
      }
    }
    return { start: start + best, period, times: Math.floor((end - start - best) / period) };
  }
}

const range = (n) => Array.from({ length: n }, (_, i) => i);
const ops = (from, to) => range(to - from).map((i) => ({ from: from + i, to: from + i + 1 }));
const isOp = (item) => item.title === undefined;

function letters(n) {
  let name = '';
  do {
    name = String.fromCharCode(97 + (n % 26)) + name;
    n = Math.floor(n / 26);
  } while (n);
  return name;
}
