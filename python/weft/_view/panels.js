// The panels beside and in place of the picture: what is selected, the user's source, text, memory,
// cost, passes, what is compiled. Each is a function that fills an element.

function el(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes)) {
    if (k.startsWith('on')) e.addEventListener(k.slice(2), v);
    else if (v !== undefined && v !== false) e.setAttribute(k, v === true ? '' : v);
  }
  e.append(...children.filter((c) => c !== null && c !== undefined));
  return e;
}

// columns: [{ title, of(row) -> text or node, number: whether it is one, sort(row) -> number }].
function table(columns, rows, { pick, most = 200, sorted = -1 } = {}) {
  const body = el('tbody');
  let shown = most, by = sorted, up = false;
  const draw = () => {
    const list = by < 0 ? rows : [...rows].sort((a, b) => {
      const [x, y] = [columns[by].sort(a), columns[by].sort(b)];
      return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1);
    });
    body.replaceChildren(...list.slice(0, shown).map((row) => el('tr',
      { onclick: pick && (() => pick(row)), class: pick ? 'link' : undefined },
      ...columns.map((c) => el('td', { class: c.number ? 'number' : undefined }, c.of(row))))));
    if (list.length > shown) {
      body.append(el('tr', {}, el('td', { colspan: columns.length },
        el('button', { onclick: () => { shown += 1000; draw(); } },
          `${showWhole(list.length - shown)} more`))));
    }
    heads.forEach((h, i) => h.setAttribute('aria-sort',
      i !== by ? 'none' : up ? 'ascending' : 'descending'));
  };
  const heads = columns.map((c, i) => el('th', {
    class: `${c.number ? 'number' : ''}${c.sort ? ' sorts' : ''}`,
    onclick: c.sort && (() => { [by, up] = [i, by === i && !up]; draw(); }),
  }, c.title));
  draw();
  return el('table', {}, el('thead', {}, el('tr', {}, ...heads)), body);
}

// A list of any length of which the rows in sight are made; all are equally high.
function longList(count, rowHeight, make) {
  const inner = el('div', { class: 'rows' });
  const outer = el('div', { class: 'long', tabindex: 0 }, inner);
  const draw = () => {
    const first = Math.max(0, Math.floor(outer.scrollTop / rowHeight) - 10);
    const last = Math.min(count(), first + Math.ceil(outer.clientHeight / rowHeight) + 20);
    inner.style.height = `${count() * rowHeight}px`;
    inner.replaceChildren();
    for (let i = first; i < last; i++) {
      const row = make(i);
      row.style.top = `${i * rowHeight}px`;
      inner.append(row);
    }
  };
  outer.addEventListener('scroll', draw);
  new ResizeObserver(draw).observe(outer);
  outer.draw = draw;
  return outer;
}

const placeText = (p) => (p.file ? `${baseName(p.file)}:${p.line}` : '');
const bar = (share) => el('span', { class: 'bar' }, el('i', { style: `width:${100 * share}%` }));

// ---- What is selected

function details(app, shown) {
  const { model } = app;
  if (!shown) return overview(app);
  const g = model.graph(shown.number);
  if (shown.kind === 'pill') {
    const list = shown.values.slice(0, 200).map((v) => [
      shown.pill === 'in' ? app.picture.inputName(shown.number, v) : model.valueName(g, v),
      v < 0 ? '' : model.typeOf(g, v).text,
      v < 0 ? '' : showBytes(model.typeOf(g, v).bytes),
    ]);
    return [el('h2', {}, plural(shown.values.length, shown.pill === 'in' ? 'input' : 'output')),
      table(['name', 'type', 'bytes'].map((title, i) => ({ title, of: (r) => r[i] })), list)];
  }
  const { from, to } = shown.item;
  const sum = (name) => g.sums[name][to] - g.sums[name][from];
  const facts = [
    ['time', `${showTime(sum('ns'))}, by estimate`], ['flops', showWhole(sum('flops'))],
    ['bytes', showBytes(sum('bytes'))],
  ];
  if (!isOp(shown.item)) {
    const title = shown.item.title;
    const rows = new Map();
    for (let i = from; i < to; i++) {
      const name = model.kind(g, i).name;
      const row = rows.get(name) ?? rows.set(name, { name, count: 0, ns: 0 }).get(name);
      row.count++;
      row.ns += model.kind(g, i).ns;
    }
    return [el('h2', {}, title), facting([['operations', showWhole(to - from)], ...facts]),
      table([
        { title: 'operation', of: (r) => r.name },
        { title: 'number', of: (r) => showWhole(r.count), number: true, sort: (r) => r.count },
        { title: 'time', of: (r) => showTime(r.ns), number: true, sort: (r) => r.ns },
      ], [...rows.values()], { sorted: 2 }),
      el('button', { onclick: () => app.picture.toggle(shown.id) },
        app.picture.open.has(shown.id) ? 'Fold' : 'Unfold')];
  }
  const kind = model.kind(g, from), place = model.place(g, from);
  const value = (v) => {
    const text = `${model.valueName(g, v)}${v < 0 ? '' : `: ${model.typeOf(g, v).text}`}`;
    const made = v < 0 ? -1 : g.producers[v];
    if (made < 0) return el('code', {}, text);
    const go = (event) => (event.preventDefault(), app.reveal(shown.number, made));
    return el('a', { href: '#', onclick: go }, el('code', {}, text));
  };
  const listed = (values) => el('div', { class: 'values' }, ...values.slice(0, 60).map(value));
  const operands = g.operands.slice(g.starts[from], g.starts[from + 1]);
  const results = kind.results.map((_, k) => g.firsts[from] + k);
  const users = [];
  for (let i = from + 1; i < g.size && users.length < 30; i++) {
    for (let k = g.starts[i]; k < g.starts[i + 1]; k++) {
      if (results.includes(g.operands[k])) {
        users.push(i);
        break;
      }
    }
  }
  return [
    el('h2', {}, kind.name, ' ', el('small', {}, `operation ${from} of ${g.size}`)),
    kind.attrs ? el('p', { class: 'attrs' }, el('code', {}, kind.attrs)) : null,
    facting([
      ['line', place.file
        ? el('a', { href: '#', title: place.file,
                    onclick: (e) => (e.preventDefault(), app.markLine(place.file, place.line)) },
          `${placeText(place)} (${place.fun})`) : 'unknown'],
      place.scope && ['scope', place.scope],
      place.of && ['for', `the ${place.of} of that line`],
      ['operands', listed(operands)], ['results', listed(results)],
      users.length && ['used by', el('div', { class: 'values' }, ...users.map((i) => el('a', {
        href: '#', onclick: (e) => (e.preventDefault(), app.reveal(shown.number, i)),
      }, el('code', {}, model.kind(g, i).name))))],
      ...facts,
      kind.functions && ['functions', `${showWhole(kind.functions)} (exp, sin and the like)`],
      ['live then', showBytes(g.live[from])],
      ['critical', g.critical[from] ? 'yes: the longest chain goes through it' : 'no'],
    ]),
    shown.holds ? el('button', { onclick: () => app.picture.toggle(shown.id) },
      app.picture.open.has(shown.id) ? 'Fold' : 'Unfold') : null,
  ];
}

function facting(rows) {
  const both = ([k, v]) => [el('dt', {}, k), el('dd', {}, v)];
  return el('dl', {}, ...rows.filter(Boolean).flatMap(both));
}

function overview(app) {
  const { analysis } = app.stage, { model } = app;
  const root = model.graph(app.root);
  return [
    el('h2', {}, 'One run of this program'),
    facting([
      ['operations', showWhole(analysis.ops)], ['flops', showCount(analysis.flops)],
      ['functions', showCount(analysis.transcendentals)],
      ['bytes moved', showBytes(analysis.bytes)], ['peak memory', showBytes(analysis.peak_bytes)],
      ['inputs', showBytes(analysis.input_bytes)], ['outputs', showBytes(analysis.output_bytes)],
      ['longest chain', `${plural(analysis.critical_path, 'op')}, ${showTime(root.chain)} of ` +
        showTime(root.sums.ns[root.size])],
    ]),
    ...(model.page.facts.length ? [el('h2', {}, 'Compiled'), facting(model.page.facts)] : []),
    el('p', { class: 'hint' }, 'Click an operation for its figures, double-click to unfold it. ' +
      'Times are estimates for one core of a CPU, from the operations’ flops and bytes.'),
  ];
}

// ---- The user's source

function sourcePanel(app) {
  const { model, page } = app;
  const files = Object.keys(page.files);
  const costs = new Map();
  for (const [number, runs] of model.runs(app.root)) {
    const g = model.graph(number);
    for (let i = 0; i < g.size; i++) {
      const p = model.place(g, i), kind = model.kind(g, i);
      if (!p.file) continue;
      const key = `${p.file}:${p.line}`;
      const c = costs.get(key) ?? costs.set(key, { ops: 0, ns: 0 }).get(key);
      c.ops++;
      if (!kind.graphs.length) c.ns += runs * kind.ns;
    }
  }
  const most = Math.max(1e-9, ...[...costs.values()].map((c) => c.ns));
  const listing = el('div', { class: 'listing' });
  const choice = el('select', { 'aria-label': 'file', onchange: () => show(choice.value) },
    ...files.map((f) => el('option', { value: f, title: f }, baseName(f))));
  const show = (file) => {
    choice.value = file;
    listing.replaceChildren();
    for (const [first, lines] of page.files[file] ?? []) {
      if (listing.children.length) listing.append(el('div', { class: 'gap' }, '⋮'));
      lines.forEach((text, k) => {
        const line = first + k, cost = costs.get(`${file}:${line}`);
        listing.append(el('div', {
          class: `line${cost ? ' has' : ''}`, 'data-line': line,
          title: cost ? `${plural(cost.ops, 'operation')}, ${showTime(cost.ns)}` : undefined,
          onclick: cost && (() => app.markLine(file, line)),
        }, el('span', { class: 'heat', style: cost ? `--s:${Math.sqrt(cost.ns / most)}` : '' }),
        el('span', { class: 'no' }, String(line)), el('code', {}, text)));
      });
    }
    mark(app.markedLine);
  };
  const mark = (at) => {
    if (at && at.file !== choice.value && page.files[at.file]) return show(at.file);
    for (const line of listing.children) {
      const on = at && at.file === choice.value && line.dataset.line === String(at.line);
      line.classList.toggle('on', Boolean(on));
      if (on) {
        const top = line.offsetTop - listing.clientHeight / 3;
        if (Math.abs(listing.scrollTop - top) > listing.clientHeight / 3) listing.scrollTop = top;
      }
    }
  };
  if (!files.length) {
    const node = el('p', { class: 'hint' }, 'No source: the operations have no lines.');
    return { node, mark() {} };
  }
  const busiest = files.map((f) => [f, [...costs].filter(([k]) => k.startsWith(`${f}:`))
    .reduce((n, [, c]) => n + c.ops, 0)]).sort((a, b) => b[1] - a[1])[0][0];
  const node = el('div', { class: 'source' }, el('div', { class: 'head' }, choice,
    el('span', { class: 'hint' }, 'bars: time by line')), listing);
  show(busiest);
  requestAnimationFrame(() => {
    const first = listing.querySelector('.has');
    if (first && !app.markedLine) listing.scrollTop = first.offsetTop - 40;
  });
  return { node, mark };
}

// ---- Text

function textPanel(app) {
  const { model } = app;
  const open = new Set();
  let rows = [];
  const build = () => {
    rows = [];
    const walk = (number, depth, path) => {
      const g = model.graph(number);
      rows.push({ depth, text: header(model, g, number === app.root ? app.page.inputs : []) });
      for (let i = 0; i < g.size; i++) {
        const kind = model.kind(g, i), id = `${path}/${i}`;
        rows.push({ depth: depth + 1, g, i, id, holds: kind.graphs.length > 0 });
        if (!open.has(id)) continue;
        for (const [label, inner] of kind.graphs) {
          rows.push({ depth: depth + 2, text: `${label} =` });
          walk(inner, depth + 2, `${id}.${inner}`);
        }
      }
      rows.push({ depth, text: `in (${g.outputs.map((v) => model.valueName(g, v)).join(', ')})` });
    };
    walk(app.root, 0, '');
  };
  build();
  const list = longList(() => rows.length, 20, (k) => {
    const row = rows[k];
    const indent = `padding-left:${8 + 16 * row.depth}px`;
    if (!row.g) return el('div', { class: 'row plain', style: indent }, row.text);
    const { g, i } = row, kind = model.kind(g, i);
    const fold = row.holds ? el('button', {
      class: 'fold', 'aria-label': 'fold', onclick: (event) => {
        event.stopPropagation();
        if (!open.delete(row.id)) open.add(row.id);
        build();
        list.draw();
      },
    }, open.has(row.id) ? '▾' : '▸') : null;
    const results = kind.results.map((t, k2) =>
      `${model.valueName(g, g.firsts[i] + k2)}:${model.types[t].text}`).join(' ');
    const operands = g.operands.slice(g.starts[i], g.starts[i + 1])
      .map((v) => model.valueName(g, v)).join(' ');
    return el('div', {
      class: `row${app.marked(g.number, i, i + 1) ? ' on' : ''}`, style: indent,
      onclick: () => app.pickOp(g.number, i),
    }, fold, el('span', { class: 'res' }, `${results} = `), el('b', {}, kind.name),
    kind.attrs ? el('span', { class: 'attr' }, `[${kind.attrs}]`) : null, ` ${operands}`,
    el('span', { class: 'at' }, placeText(model.place(g, i))));
  });
  list.classList.add('code');
  requestAnimationFrame(list.draw);
  return list;
}
function header(model, g, names) {
  const inputs = g.inputs.slice(0, 12).map((t, i) =>
    `${model.names(g)[i]}:${model.types[t].text}${names[i] ? ` (${names[i]})` : ''}`);
  const more = g.inputs.length > 12 ? ` … ${g.inputs.length - 12} more` : '';
  return `lambda ${inputs.join(' ')}${more}. let`;
}

// ---- Memory

function memoryPanel(app) {
  const { model } = app;
  const graphs = [...model.reached(app.root)].filter(([n]) => model.graph(n).size > 1);
  const holder = el('div', { class: 'page' });
  const choice = el('select', { 'aria-label': 'graph', onchange: () => show(Number(choice.value)) },
    ...graphs.slice(0, 300).map(([n, at]) => el('option', { value: n }, at === null ? 'the program'
      : `${at.label} of ${model.kind(model.graph(at.graph), at.op).name} ` +
        `(${placeText(model.place(model.graph(at.graph), at.op)) || `op ${at.op}`})`)));
  const show = (number) => {
    choice.value = number;
    const g = model.graph(number);
    const held = g.held.map((v) => ({ v, bytes: model.typeOf(g, v).bytes }));
    const top = g.live[g.peak] ?? 0;
    const inside = top - held.reduce((n, h) => n + h.bytes, 0);
    const lines = new Map();
    for (const h of held) {
      const op = g.producers[h.v];
      const place = op < 0 ? null : model.place(g, op);
      const key = op < 0 ? 'inputs' : placeText(place) || 'unknown line';
      const row = lines.get(key) ?? lines.set(key, { key, place, bytes: 0, values: [] }).get(key);
      row.bytes += h.bytes;
      row.values.push(h);
    }
    const rows = [...lines.values()];
    const peakKind = model.kind(g, g.peak);
    if (inside > 0.5) {
      rows.push({ key: `inside of ${peakKind.name}`, bytes: inside, values: [], within: true });
    }
    const names = (row) => row.values.sort((a, b) => b.bytes - a.bytes).slice(0, 3).map((h) => {
      const name = g.producers[h.v] < 0 ? app.picture.inputName(number, h.v)
        : model.kind(g, g.producers[h.v]).name;
      return `${name} ${model.typeOf(g, h.v).text}`;
    }).join(', ') + (row.values.length > 3 ? ', …' : '');
    holder.replaceChildren(
      el('div', { class: 'head' }, el('h2', {}, 'Memory over the order of operations'), choice),
      el('p', {}, `At most ${showBytes(top)} are live, while operation ${g.peak} runs: `,
        el('a', { href: '#', onclick: (e) => (e.preventDefault(), app.reveal(number, g.peak)) },
          el('code', {}, peakKind.name)),
        `, ${placeText(model.place(g, g.peak)) || 'of an unknown line'}.`),
      chart(app, g),
      el('h2', {}, 'What is live at the peak, by line'),
      table([
        { title: 'line', of: (r) => r.key },
        { title: 'bytes', of: (r) => showBytes(r.bytes), number: true, sort: (r) => r.bytes },
        { title: 'share', of: (r) => bar(r.bytes / Math.max(1, top)) },
        { title: 'values', of: (r) => String(r.values.length || ''), number: true,
          sort: (r) => r.values.length },
        { title: 'largest', of: (r) => (r.within
          ? 'choose its graph above for what is in it' : names(r)) },
      ], rows, { sorted: 1, pick: (r) => r.place && app.markLine(r.place.file, r.place.line) }),
      el('p', { class: 'hint' }, 'weft counts this on its own graph, operations run in its order: ' +
        'an input lives to its last use, a result from its operation to its last use, an ' +
        'output to the end. XLA fuses and reorders, and may need less. Of the graphs of calls, ' +
        'loops and branches only what is neither an input nor an output of theirs counts.'));
  };
  show(app.root);
  return holder;
}

function chart(app, g) {
  const W = 1000, H = 220, bins = Math.min(g.size, 1000);
  const most = Math.max(1, g.live[g.peak]);
  const x = (i) => (i / Math.max(1, bins)) * W, y = (b) => H - (b / most) * (H - 14);
  let d = `M0,${H}`;
  for (let b = 0; b < bins; b++) {
    const [from, to] = [Math.floor((b * g.size) / bins), Math.floor(((b + 1) * g.size) / bins)];
    let high = 0;
    for (let i = from; i < to; i++) high = Math.max(high, g.live[i]);
    d += `L${x(b).toFixed(1)},${y(high).toFixed(1)}L${x(b + 1).toFixed(1)},${y(high).toFixed(1)}`;
  }
  const at = ((g.peak + 0.5) / g.size) * W;
  const note = el('output', {}, ' ');
  const opAt = (event) => {
    const r = picture.getBoundingClientRect();
    const share = (event.clientX - r.left) / r.width;
    return Math.max(0, Math.min(g.size - 1, Math.floor(share * g.size)));
  };
  const cursor = svg('line', { class: 'cursor', y1: 0, y2: H });
  const picture = svg('svg', { viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: 'none' },
    ...[0.25, 0.5, 0.75].map((f) => svg('line', {
      class: 'grid', x1: 0, x2: W, y1: y(f * most), y2: y(f * most) })),
    svg('path', { class: 'area', d: `${d}L${W},${H}Z` }),
    svg('line', { class: 'peak', x1: at, x2: at, y1: 0, y2: H }), cursor);
  picture.addEventListener('pointermove', (event) => {
    const i = opAt(event);
    cursor.setAttribute('x1', ((i + 0.5) / g.size) * W);
    cursor.setAttribute('x2', ((i + 0.5) / g.size) * W);
    note.textContent = `operation ${i}: ${app.model.kind(g, i).name}, ` +
      `${placeText(app.model.place(g, i))}; ${showBytes(g.live[i])} live`;
  });
  picture.addEventListener('click', (event) => app.reveal(g.number, opAt(event)));
  return el('figure', { class: 'chart' },
    el('div', { class: 'scale' },
      ...[most, most / 2, 0].map((bytes) => el('span', {}, bytes ? showBytes(bytes) : '0'))),
    picture, el('figcaption', {}, note, el('span', {}, `${plural(g.size, 'operation')} →`)));
}

// ---- Cost

function costPanel(app) {
  const { analysis } = app.stage;
  const columns = (first) => [
    { title: first, of: (r) => el('code', { title: r.name }, baseName(r.name)) },
    ...['ops', 'flops', 'transcendentals', 'bytes'].flatMap((key) => [
      { title: { ops: 'operations', transcendentals: 'functions' }[key] ?? key,
        of: (r) => showWhole(r[key]), number: true, sort: (r) => r[key] },
      ...(key === 'flops' || key === 'bytes'
        ? [{ title: '', of: (r) => bar(r[key] / Math.max(1, analysis[key])) }] : []),
    ]),
  ];
  const rows = (by) => Object.entries(by).map(([name, of]) => ({ name, ...of }));
  const tile = (title, text) =>
    el('div', { class: 'tile' }, el('b', {}, text), el('span', {}, title));
  const fileOf = (text) => app.model.places.find((p) => p.file && text === `${p.file}:${p.line}`);
  return el('div', { class: 'page' },
    el('div', { class: 'tiles' }, tile('operations', showWhole(analysis.ops)),
      tile('flops', showCount(analysis.flops)),
      tile('sin, exp and the like', showCount(analysis.transcendentals)),
      tile('read and written', showBytes(analysis.bytes)),
      tile('live at once', showBytes(analysis.peak_bytes)),
      tile('longest chain', plural(analysis.critical_path, 'op')),
      tile('most on one level', plural(analysis.width, 'op'))),
    el('h2', {}, 'By line'),
    table(columns('line'), rows(analysis.by_line), { sorted: 2, pick: (r) => {
      const p = fileOf(r.name);
      if (p) app.markLine(p.file, p.line);
    } }),
    el('h2', {}, 'By operation'),
    table(columns('operation'), rows(analysis.by_op),
      { sorted: 2, pick: (r) => app.search(r.name) }));
}

function chainPanel(app) {
  const { model } = app;
  const rows = [];
  const g = model.graph(app.root);
  let sum = 0;
  for (let i = 0; i < g.size; i++) {
    if (!g.critical[i]) continue;
    sum += model.kind(g, i).ns;
    rows.push({ i, kind: model.kind(g, i), place: model.place(g, i), sum });
  }
  const all = g.sums.ns[g.size];
  const most = Math.max(1e-9, ...rows.map((r) => r.kind.ns));
  const lines = new Map();
  for (const { kind, place } of rows) {
    const key = placeText(place) || 'unknown line';
    const line = lines.get(key) ?? lines.set(key, { key, place, ns: 0, count: 0 }).get(key);
    line.ns += kind.ns;
    line.count++;
  }
  return el('div', { class: 'page' },
    el('h2', {}, 'The critical path'),
    el('p', {}, `The chain of ${plural(rows.length, 'operation')} that takes longest, by ` +
      `estimate: ${showTime(g.chain)} of ${showTime(all)} in all. However much runs at once, a ` +
      `run takes as long. ${all > 0 ? (all / g.chain).toFixed(2) : 1} cores would be busy on ` +
      'average.'),
    table([
      { title: 'line', of: (r) => r.key },
      { title: 'operations', of: (r) => showWhole(r.count), number: true, sort: (r) => r.count },
      { title: 'time', of: (r) => showTime(r.ns), number: true, sort: (r) => r.ns },
      { title: 'share', of: (r) => bar(r.ns / Math.max(g.chain, 1e-9)) },
    ], [...lines.values()], { sorted: 2, most: 12,
      pick: (r) => r.place.file && app.markLine(r.place.file, r.place.line) }),
    el('h2', {}, 'Its operations, in order'),
    table([
      { title: '', of: (r) => String(r.i), number: true },
      { title: 'operation', of: (r) => el('code', {}, r.kind.name) },
      { title: 'result', of: (r) => el('code', {},
        cut(r.kind.results.map((t) => model.types[t].text).join(' '), 40)) },
      { title: 'line', of: (r) => placeText(r.place) },
      { title: 'time', of: (r) => showTime(r.kind.ns), number: true, sort: (r) => r.kind.ns },
      { title: '', of: (r) => bar(r.kind.ns / most) },
      { title: 'until then', of: (r) => showTime(r.sum), number: true },
    ], rows, { most: 500, pick: (r) => app.reveal(g.number, r.i) }));
}

// ---- Passes

function passesPanel(app) {
  const { page } = app;
  const steps = el('ol', { class: 'steps' });
  const right = el('div', { class: 'diff' });
  const choose = (k) => {
    [...steps.children].forEach((s, i) => s.classList.toggle('on', i === k));
    const stage = page.stages[k];
    const go = (tab, text) =>
      el('button', { onclick: () => { app.show(k); app.open(tab); } }, text);
    right.replaceChildren(
      el('h2', {}, stage.name), el('p', {}, stage.doc),
      el('p', {}, go('graph', 'Picture after this'), ' ', go('text', 'Text after this')),
      ...difference(app, k));
  };
  page.stages.forEach((stage, k) => {
    if (stage.hidden) return;
    const [before, after] = stage.ops;
    const hits = Object.entries(stage.rewrites).sort((a, b) => b[1] - a[1]);
    steps.append(el('li', { onclick: () => choose(k), class: stage.changed ? 'changed' : 'same' },
      el('b', {}, stage.name),
      el('span', {}, before === null ? plural(after, 'op')
        : before === after ? (stage.changed ? plural(after, 'op') : 'nothing to do')
          : `${showWhole(before)} → ${showWhole(after)} ops`),
      stage.ms === null ? null : el('small', {}, `${stage.ms.toFixed(1)} ms`),
      hits.length ? el('ul', {}, ...hits.slice(0, 6).map(([name, n]) =>
        el('li', {}, `${showWhole(n)} × ${name}`)),
      hits.length > 6 ? el('li', {}, `${hits.length - 6} other rewrites`) : null) : null));
  });
  const first = page.stages.findIndex((s, k) => k > 0 && s.changed);
  choose(first < 0 ? 0 : first);
  return el('div', { class: 'passes' }, steps, right);
}

// Operations as text, without the names of values, which each pass changes.
function opRows(model, root) {
  const rows = new Map();
  const texts = new Map();
  for (const number of model.reached(root).keys()) {
    const g = model.graph(number);
    for (let i = 0; i < g.size; i++) {
      const key = g.kinds[i] * 2 ** 18 + g.places[i];
      let text = texts.get(key);
      if (text === undefined) {
        const kind = model.kind(g, i), place = model.place(g, i);
        text = `${kind.results.map((t) => model.types[t].text).join(' ')} = ${kind.name}` +
          `${kind.attrs ? `[${kind.attrs}]` : ''}\t${`${placeText(place)} ${place.of}`.trim()}`;
        texts.set(key, text);
      }
      rows.set(text, (rows.get(text) ?? 0) + 1);
    }
  }
  return rows;
}

function difference(app, k) {
  const { model, page } = app;
  const { changed, ops: [count, left] } = page.stages[k];
  if (k === 0 || !changed) {
    return [el('p', { class: 'hint' }, k === 0 ? 'As the function was traced.' : count === left
      ? 'It left the program as it was.'
      : 'Of a program as large, only what all passes made is in this page.')];
  }
  const before = opRows(model, model.programs[page.stages[k - 1].program]);
  const after = opRows(model, model.programs[page.stages[k].program]);
  const changes = [], names = new Map();
  for (const text of new Set([...before.keys(), ...after.keys()])) {
    const [a, b] = [before.get(text) ?? 0, after.get(text) ?? 0];
    const name = / = ([^[\t]*)/.exec(text)[1];
    const of = names.get(name) ?? names.set(name, { name, a: 0, b: 0 }).get(name);
    of.a += a;
    of.b += b;
    if (a !== b) changes.push({ text, a, b });
  }
  const line = (text, n, sign) => {
    const [op, at] = text.split('\t');
    return el('div', { class: `change ${sign === '−' ? 'gone' : 'new'}` }, el('i', {}, sign),
      el('span', { class: 'n' }, n > 1 ? `${n} ×` : ''), el('code', {}, op),
      el('span', { class: 'at' }, at));
  };
  const side = (title, list, sign) => el('section', {}, el('h3', {}, `${title} (${showWhole(
    list.reduce((n, c) => n + Math.abs(c.a - c.b), 0))})`),
  ...list.sort((x, y) => Math.abs(y.a - y.b) - Math.abs(x.a - x.b)).slice(0, 400)
    .map((c) => line(c.text, Math.abs(c.a - c.b), sign)));
  const counts = [...names.values()].filter((n) => n.a !== n.b);
  return [
    el('div', { class: 'chips' }, ...counts
      .sort((x, y) => Math.abs(y.a - y.b) - Math.abs(x.a - x.b)).slice(0, 24)
      .map((n) => el('span', { class: n.b < n.a ? 'gone' : 'new' },
        `${n.name} ${showWhole(n.a)} → ${showWhole(n.b)}`))),
    el('div', { class: 'sides' }, side('Before only', changes.filter((c) => c.a > c.b), '−'),
      side('After only', changes.filter((c) => c.b > c.a), '+')),
  ];
}

// ---- What is compiled

function compiledPanel(app) {
  const { compiled, explanation } = app.page;
  const part = ({ title, why, columns, rows }) => [
    el('h2', {}, title, ' ', el('small', {}, rows.length ? showWhole(rows.length) : 'none')),
    el('p', {}, why),
    rows.length ? table(columns.map((c, i) => ({
      title: c, of: (r) => r.cells[i].toLocaleString('en-US'),
      number: typeof rows[0].cells[i] === 'number', sort: (r) => r.cells[i],
    })), rows, { pick: rows.some((r) => r.stage !== null || r.line) && ((r) => {
      if (r.stage !== null) {
        app.show(r.stage);
        app.open('graph');
      } else if (r.line) app.markLine(...r.line);
    }) }) : null,
  ];
  return el('div', { class: 'page' }, ...compiled.flatMap(part), app.page.facts.length ? null
    : el('p', { class: 'hint' }, 'This is what jit would do for one device of a CPU.'),
    ...(explanation
      ? [el('h2', {}, 'Why it was traced and compiled'), el('pre', {}, explanation)] : []));
}

// ---- How arrays are split

function shardingPanel(app) {
  return el('div', { class: 'page' }, el('h2', {}, 'How arrays are split over devices'),
    ...app.page.shardings.map((s) => {
      const picture = el('div', { class: 'picture' });
      picture.innerHTML = s.svg;
      return el('section', { class: 'sharding' }, el('h3', {}, s.names.join(', ')),
        el('code', {}, s.text), picture);
    }));
}
