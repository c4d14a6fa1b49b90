// The picture of a program: what is open is laid out, what is in sight is drawn.

const SVG = 'http://www.w3.org/2000/svg';
const PAD = { x: 18, top: 40, bottom: 18 };
const MOST_AT_ONCE = 110; // items on the first look

function svg(tag, attributes, ...children) {
  const e = document.createElementNS(SVG, tag);
  for (const [k, v] of Object.entries(attributes ?? {})) if (v !== undefined) e.setAttribute(k, v);
  e.append(...children);
  return e;
}

const pen = document.createElement('canvas').getContext('2d');
const widths = new Map();
function textWidth(text, font) {
  const key = `${font}\n${text}`;
  let w = widths.get(key);
  if (w === undefined) {
    pen.font = font;
    widths.set(key, (w = pen.measureText(text).width));
  }
  return w;
}
const NAME_FONT = '600 13px system-ui, sans-serif';
const MONO_FONT = '11px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace';
const cut = (text, n) => (text.length > n ? `${text.slice(0, n - 1)}…` : text);

class Picture {
  // paint(item) -> { color, strength }: how an item is coloured; marked(graph, from, to) -> how
  // many of its operations are marked; picked(item): an item was clicked, null for none.
  constructor(holder, model, { paint, marked, picked }) {
    Object.assign(this, { holder, model, paint, marked, picked });
    this.canvas = svg('svg', { class: 'canvas', tabindex: 0, role: 'img', 'aria-label': 'graph' });
    this.world = svg('g');
    this.boxes = svg('g');
    this.lines = svg('g', { class: 'edges' });
    this.nodes = svg('g');
    this.world.append(this.boxes, this.lines, this.nodes);
    this.canvas.append(this.world);
    holder.append(this.canvas);
    this.drawn = new Map();
    this.view = { x: 0, y: 0, scale: 1 };
    this.listen();
    new ResizeObserver(() => this.draw()).observe(holder);
  }

  // Shows a program, with what is small open.
  show(root) {
    this.root = root;
    this.open = new Set();
    this.selected = null;
    this.openFirst();
    this.layout();
    this.fit(true);
  }

  openFirst() {
    let budget = MOST_AT_ONCE;
    const queue = [[`${this.root}`, this.root, 0, this.model.graph(this.root).size]];
    while (queue.length) {
      const [path, number, from, to] = queue.shift();
      for (const item of this.model.items(number, from, to)) {
        const inner = this.inside(item, number, path);
        const shown = inner.map((r) => this.model.items(r.number, r.from, r.to).length);
        const count = shown.reduce((a, b) => a + b, 0);
        if (!count || count > budget || !isOp(item)) continue;
        budget -= count;
        this.open.add(this.idOf(item, path));
        for (const r of inner) queue.push([r.path, r.number, r.from, r.to]);
      }
    }
  }
  idOf(item, path) {
    return `${path}/${isOp(item) ? item.from : `${item.from}-${item.to}`}`;
  }

  // What an item holds: regions, each a stretch of a graph.
  inside(item, number, path) {
    const id = this.idOf(item, path);
    if (!isOp(item)) return [{ path: id, number, from: item.from, to: item.to, label: '' }];
    const g = this.model.graph(number), kind = this.model.kind(g, item.from);
    return kind.graphs.map(([label, n], k) => ({
      path: `${id}.${k}`, number: n, from: 0, to: this.model.graph(n).size, holder: kind.name,
      label: kind.graphs.length > 1 ? label : '', isWhole: true,
    }));
  }

  // ---- Layout: a tree of boxes, each with positions in the one around it

  layout() {
    const g = this.model.graph(this.root);
    this.scene = this.region(
      { path: `${this.root}`, number: this.root, from: 0, to: g.size, isWhole: true }
    );
    this.flat = [];
    this.paths = [];
    this.flatten(this.scene, 0, 0, 0);
    this.byId = new Map(this.flat.map((s) => [s.id, s]));
    this.redraw();
  }

  region({ path, number, from, to, label, isWhole }) {
    const g = this.model.graph(number);
    const items = this.model.items(number, from, to);
    const nodes = items.map((item) => this.node(item, number, path));
    const at = new Int32Array(to - from);
    items.forEach((item, k) => at.fill(k, item.from - from, item.to - from));
    const between = new Map(), inputs = new Map();
    const item = (v) => {
      const op = v < 0 ? -1 : g.producers[v];
      return op >= from && op < to ? at[op - from] : -1;
    };
    for (let i = from; i < to; i++) {
      const target = at[i - from];
      for (let k = g.starts[i]; k < g.starts[i + 1]; k++) {
        const v = g.operands[k];
        const source = item(v);
        if (source >= 0 && source !== target) add(between, `${source} ${target}`, v);
        else if (isWhole && v >= 0 && v < g.inputs.length) add(inputs, v, target);
      }
    }
    const edges = [...between].map(([key, values]) => {
      const [a, b] = key.split(' ').map(Number);
      return { from: a, to: b, values };
    });
    const all = [...nodes], lines = edges;
    if (isWhole) {
      this.addInputs(g, number, path, inputs, all, lines);
      this.addOutputs(g, number, path, item, all, lines);
    }
    // Layers want edges from earlier nodes to later ones.
    const rankOf = all.map((n, i) => (n.pill === 'in' ? -1 : i));
    const sorted = all.map((_, i) => i).sort((a, b) => rankOf[a] - rankOf[b] || a - b);
    const position = new Int32Array(all.length);
    sorted.forEach((i, k) => (position[i] = k));
    const ordered = sorted.map((i) => all[i]);
    for (const e of lines) [e.from, e.to] = [position[e.from], position[e.to]];
    const size = layered(ordered, lines);
    return {
      kind: 'region', id: `${path}#`, label, number, w: size.w, h: size.h, children: ordered,
      lines: lines.map((e, k) => ({
        id: `${path}#${k}`, points: e.points, values: [...e.values], number,
        ends: [ordered[e.from].id, ordered[e.to].id],
      })),
    };
  }

  // Inputs stand at what takes them, once for each: many together.
  addInputs(g, number, path, inputs, nodes, lines) {
    const takers = new Map();
    for (const [v, targets] of inputs) for (const to of targets) add(takers, to, v);
    for (const [to, values] of takers) {
      const list = [...values];
      for (const some of list.length > 3 ? [list] : list.map((v) => [v])) {
        const one = some.length === 1;
        nodes.push(this.pill('in', `${path}/in${some[0]}-${to}`, number, some,
          one ? this.inputName(number, some[0]) : plural(some.length, 'input'),
          one ? this.model.typeOf(g, some[0]).text : ''));
        lines.push({ from: nodes.length - 1, to, values: some });
      }
    }
  }
  inputName(number, v) {
    const names = number === this.root ? this.model.page.inputs : [];
    return names[v] ?? this.model.valueName(this.model.graph(number), v);
  }

  addOutputs(g, number, path, item, nodes, lines) {
    const made = new Map();
    for (const [k, v] of g.outputs.entries()) {
      const source = item(v);
      if (source >= 0) add(made, source, k);
    }
    for (const [source, which] of made) {
      const list = [...which];
      const names = number === this.root ? this.model.page.outputs : [];
      const one = list.length === 1;
      const label = one ? names[list[0]] || (g.outputs.length > 1 ? `out ${list[0]}` : 'out')
        : plural(list.length, 'output');
      const values = list.map((k) => g.outputs[k]);
      const type = one ? this.model.typeOf(g, values[0]).text : '';
      nodes.push(this.pill('out', `${path}/out${list[0]}`, number, values, label, type));
      lines.push({ from: source, to: nodes.length - 1, values });
    }
  }

  pill(pill, id, number, values, title, type) {
    const name = cut(title, 34), sub = cut(type, 34);
    const w = 24 + Math.max(textWidth(name, MONO_FONT), textWidth(sub, MONO_FONT));
    const h = sub ? 34 : 22;
    return { kind: 'pill', pill, isLight: true, id, number, values, title: name, sub, w, h };
  }

  node(item, number, path) {
    const id = this.idOf(item, path), g = this.model.graph(number);
    const inner = this.inside(item, number, path);
    const node = { kind: 'node', id, number, item, path, holds: inner.length > 0 };
    if (isOp(item)) {
      const kind = this.model.kind(g, item.from);
      node.title = kind.name;
      if (kind.label && kind.label !== kind.name) node.title += ` ${cut(kind.label, 24)}`;
      if (kind.trips > 1) node.title += `  ×${showWhole(kind.trips)}`;
      node.sub = cut(kind.results.map((t) => this.model.types[t].text).join(' '), 36);
      if (kind.split) node.sub += `  ⟨${cut(kind.split, 30)}⟩`;
      node.holder = kind.name;
    } else {
      const part = item.part ? `  ${item.part[0]} of ${item.part[1]}` : '';
      node.title = `${cut(item.title, 40)}${part}`;
      node.sub = plural(item.to - item.from, 'op');
    }
    if (node.holds && this.open.has(id)) {
      const regions = inner.map((r) => this.region(r));
      let x = PAD.x, h = 0;
      for (const r of regions) {
        r.x = x;
        r.y = PAD.top + (r.label ? 20 : 0);
        x += r.w + 30;
        h = Math.max(h, r.y + r.h);
      }
      node.children = regions;
      const head = textWidth(node.title, NAME_FONT) + textWidth(node.sub, MONO_FONT) + 70;
      node.w = Math.max(x - 30 + PAD.x, head);
      const spare = node.w - (x - 30 + PAD.x);
      for (const r of regions) r.x += spare / 2;
      node.h = h + PAD.bottom;
      return node;
    }
    const text = Math.max(textWidth(node.title, NAME_FONT), textWidth(node.sub, MONO_FONT));
    node.w = Math.max(84, text + 24 + (node.holds ? 20 : 0));
    node.h = 44;
    return node;
  }

  flatten(box, x, y, depth) {
    for (const child of box.children ?? []) {
      const placed = Object.assign(child, { X: x + child.x, Y: y + child.y, depth });
      if (child.kind !== 'region') this.flat.push(placed);
      this.flatten(child, placed.X, placed.Y, depth + 1);
    }
    for (const line of box.lines ?? []) {
      const points = line.points.map(([a, b]) => [x + a, y + b]);
      const xs = points.map((p) => p[0]), ys = points.map((p) => p[1]);
      this.paths.push({
        ...line, points,
        box: [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)],
      });
    }
  }

  // ---- Drawing

  redraw() {
    for (const e of this.drawn.values()) e.remove();
    this.drawn.clear();
    this.draw();
  }

  draw() {
    if (!this.scene) return;
    const { x, y, scale } = this.view;
    const w = this.holder.clientWidth, h = this.holder.clientHeight;
    this.world.setAttribute('transform', `translate(${x},${y}) scale(${scale})`);
    this.canvas.classList.toggle('far', scale < 0.45);
    const margin = 60 / scale;
    const [l, t] = [-x / scale - margin, -y / scale - margin];
    const [r, b] = [l + w / scale + 2 * margin, t + h / scale + 2 * margin];
    const wanted = new Set();
    for (const s of this.flat) {
      if (s.X > r || s.Y > b || s.X + s.w < l || s.Y + s.h < t) continue;
      if (s.depth > 1 && s.w * scale < 2) continue;
      wanted.add(s.id);
      if (!this.drawn.has(s.id)) this.drawn.set(s.id, this.shape(s));
    }
    for (const p of this.paths) {
      const [pl, pt, pr, pb] = p.box;
      if (pl > r || pt > b || pr < l || pb < t) continue;
      wanted.add(p.id);
      if (!this.drawn.has(p.id)) this.drawn.set(p.id, this.edge(p));
    }
    for (const [id, e] of this.drawn) {
      if (wanted.has(id)) continue;
      e.remove();
      this.drawn.delete(id);
    }
  }

  edge(p) {
    const [start, ...rest] = p.points;
    let d = `M${start[0].toFixed(1)},${start[1].toFixed(1)}`;
    let before = start;
    rest.forEach((to, k) => {
      const straight = k % 2 === 0;
      const mid = (before[1] + to[1]) / 2;
      d += straight
        ? `L${to.map((c) => c.toFixed(1))}`
        : `C${before[0].toFixed(1)},${mid.toFixed(1)} ${to[0].toFixed(1)},${mid.toFixed(1)} ` +
          `${to[0].toFixed(1)},${to[1].toFixed(1)}`;
      before = to;
    });
    const e = svg('path', { d, class: this.edgeClass(p) });
    this.lines.append(e);
    e.edge = p;
    return e;
  }
  edgeClass(p) {
    const near = this.selected && p.ends.includes(this.selected);
    const chain = this.chain && this.joinsChain(...p.ends.map((id) => this.byId.get(id)));
    return `edge${near ? ' near' : ''}${chain ? ' chain' : ''}`;
  }
  // Whether the chain that takes longest goes from one item to the other.
  joinsChain(a, b) {
    if (a?.kind !== 'node' || b?.kind !== 'node') return false;
    const { critical } = this.model.graph(a.number);
    let last = a.item.to - 1, next = b.item.from;
    while (last >= a.item.from && !critical[last]) last--;
    while (next < b.item.to && !critical[next]) next++;
    if (last < a.item.from || next === b.item.to) return false;
    return !critical.subarray(last + 1, next).includes(1);
  }
  isCritical(s) {
    if (s?.kind !== 'node') return false;
    const g = this.model.graph(s.number);
    for (let i = s.item.from; i < s.item.to; i++) if (g.critical[i]) return true;
    return false;
  }

  shape(s) {
    const e = s.kind === 'pill' ? this.pillShape(s) : this.nodeShape(s);
    e.dataset.id = s.id;
    e.shown = s;
    (s.children ? this.boxes : this.nodes).append(e);
    if (s.children) this.inOrder();
    return e;
  }
  // Boxes around others lie below them.
  inOrder() {
    const all = [...this.boxes.children].sort((a, b) => a.shown.depth - b.shown.depth);
    this.boxes.append(...all);
  }

  pillShape(s) {
    const y = s.sub ? [14, 27] : [15];
    const classes = `pill ${s.pill}${this.stateOf(s)}`;
    return svg('g', { class: classes, transform: `translate(${s.X},${s.Y})` },
      svg('rect', { width: s.w, height: s.h, rx: 11 }),
      svg('text', { x: s.w / 2, y: y[0], class: 'name' }, s.title),
      ...(s.sub ? [svg('text', { x: s.w / 2, y: y[1], class: 'type' }, s.sub)] : []));
  }

  nodeShape(s) {
    const { color, strength } = this.paint(s);
    const classes = `node${s.children ? ' open' : ''}${isOp(s.item) ? '' : ' group'}` +
      `${s.holder === 'kernel' ? ' kernel' : ''}${this.stateOf(s)}`;
    const marks = this.marked(s.number, s.item.from, s.item.to);
    const e = svg('g', {
      class: classes, transform: `translate(${s.X},${s.Y})`,
      style: `--c:${color};--s:${(6 + 30 * strength).toFixed(0)}%`,
    });
    e.append(svg('rect', { class: 'body', width: s.w, height: s.h, rx: s.children ? 10 : 6 }));
    if (!s.children) {
      if (!isOp(s.item) || s.holds) {
        e.prepend(svg('rect', { class: 'under', x: 4, y: 4, width: s.w, height: s.h, rx: 6 }));
      }
      e.append(svg('rect', { class: 'stripe', width: 5, height: s.h - 10, x: 5, y: 5, rx: 2 }));
    }
    const x = s.children ? 34 : 18;
    e.append(svg('text', { class: 'name', x, y: s.children ? 22 : 18 }, s.title));
    const subX = s.children ? x + textWidth(s.title, NAME_FONT) + 12 : x;
    e.append(svg('text', { class: 'type', x: subX, y: s.children ? 22 : 34 }, s.sub));
    if (s.holds) e.append(this.chevron(s));
    for (const r of s.children ?? []) {
      if (r.label) {
        e.append(svg('text', { class: 'region', x: r.x + r.w / 2, y: PAD.top + 8 }, r.label));
      }
    }
    if (marks) {
      const text = marks > 1 ? showWhole(marks) : '';
      const w = text ? textWidth(text, MONO_FONT) + 10 : 10;
      e.append(svg('g', { class: 'badge', transform: `translate(${s.w - w + 4},-6)` },
        svg('rect', { width: w, height: text ? 16 : 10, rx: text ? 8 : 5 }),
        svg('text', { x: w / 2, y: 12 }, text)));
      e.classList.add('marked');
    }
    return e;
  }
  chevron(s) {
    const [x, y] = s.children ? [10, 8] : [s.w - 24, 13];
    const d = s.children ? 'M5,7 L9,11 L13,7' : 'M7,5 L11,9 L7,13';
    return svg('g', { class: 'chevron', transform: `translate(${x},${y})` },
      svg('title', {}, s.children ? 'fold' : 'unfold'),
      svg('rect', { width: 18, height: 18, rx: 4 }), svg('path', { d }));
  }
  stateOf(s) {
    const critical = this.chain && this.isCritical(s) ? ' critical' : '';
    return `${s.id === this.selected ? ' selected' : ''}${critical}`;
  }

  // ---- Folding, selecting, moving

  toggle(id, open = !this.open.has(id)) {
    const s = this.byId.get(id);
    if (!s?.holds) return;
    const before = this.screenOf(s);
    if (open) this.open.add(id);
    else this.open.delete(id);
    this.layout();
    // What was clicked stays where it is.
    const after = this.screenOf(this.byId.get(id));
    this.view.x += before[0] - after[0];
    this.view.y += before[1] - after[1];
    this.draw();
  }
  screenOf(s) {
    const { x, y, scale } = this.view;
    return [x + (s.X + (s.children ? 0 : s.w / 2)) * scale - (s.children ? -s.w / 2 : 0) * scale,
            y + s.Y * scale];
  }
  foldAll() {
    this.open.clear();
    this.layout();
    this.fit(true);
  }
  unfoldMore() {
    let added = 0;
    for (const s of [...this.flat]) {
      if (!s.holds || this.open.has(s.id) || added > 400) continue;
      for (const r of this.inside(s.item, s.number, s.path)) {
        added += this.model.items(r.number, r.from, r.to).length;
      }
      this.open.add(s.id);
    }
    this.layout();
    this.fit(true);
  }

  select(id) {
    this.selected = id;
    this.redraw();
  }

  // Opens what an operation is in, selects it and moves it into sight.
  reveal(number, op) {
    const reached = (this.reachedOf ??= new Map()).get(this.root) ?? this.model.reached(this.root);
    this.reachedOf.set(this.root, reached);
    const way = [];
    for (let at = { graph: number, op }; at; at = reached.get(at.graph)) way.unshift(at);
    let path = `${this.root}`, id = null;
    way.forEach((step, depth) => {
      let [from, to] = [0, this.model.graph(step.graph).size];
      for (;;) {
        const item = this.model.items(step.graph, from, to)
          .find((it) => it.from <= step.op && step.op < it.to);
        id = this.idOf(item, path);
        if (isOp(item)) break;
        this.open.add(id);
        [path, from, to] = [id, item.from, item.to];
      }
      if (depth + 1 < way.length) {
        this.open.add(id);
        const kind = this.model.kind(this.model.graph(step.graph), step.op);
        const k = kind.graphs.findIndex(([, n]) => n === way[depth + 1].graph);
        path = `${id}.${k}`;
      }
    });
    this.selected = id;
    this.layout();
    this.moveTo(id);
    return this.byId.get(id);
  }

  moveTo(id) {
    const s = this.byId.get(id);
    if (!s) return;
    const scale = Math.max(this.view.scale, 0.75);
    this.view = {
      scale, x: this.holder.clientWidth / 2 - (s.X + s.w / 2) * scale,
      y: this.holder.clientHeight / 2 - (s.Y + Math.min(s.h / 2, 200)) * scale,
    };
    this.draw();
  }

  // All of it in sight, or its beginning where that would be too small to read.
  fit(legible = false) {
    const w = this.holder.clientWidth, h = this.holder.clientHeight;
    const { w: W, h: H } = this.scene;
    let scale = Math.min(1.15, (w - 60) / Math.max(W, 1), (h - 130) / Math.max(H, 1));
    if (legible) scale = Math.max(scale, Math.min(0.72, Math.max(0.5, (w - 60) / W)));
    const x = (w - W * scale) / 2;
    this.view = { scale, x: legible && W * scale > w ? this.startX(scale) : x,
                  y: H * scale < h - 130 ? (h - H * scale) / 2 : 64 };
    this.draw();
  }
  // Where the widest thing at the top is in the middle.
  startX(scale) {
    const top = this.scene.children.filter((c) => c.kind === 'node');
    const first = top.reduce((a, b) => (b.Y < a.Y ? b : a), top[0] ?? this.scene.children[0]);
    return this.holder.clientWidth / 2 - (first.X + first.w / 2) * scale;
  }

  zoom(factor, cx = this.holder.clientWidth / 2, cy = this.holder.clientHeight / 2) {
    const v = this.view;
    const scale = Math.min(4, Math.max(0.02, v.scale * factor));
    v.x = cx - ((cx - v.x) * scale) / v.scale;
    v.y = cy - ((cy - v.y) * scale) / v.scale;
    v.scale = scale;
    this.draw();
  }

  listen() {
    const c = this.canvas;
    let drag = null;
    c.addEventListener('wheel', (event) => {
      event.preventDefault();
      const rect = c.getBoundingClientRect();
      if (event.ctrlKey || event.metaKey || !event.shiftKey) {
        const f = Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016));
        this.zoom(f, event.clientX - rect.left, event.clientY - rect.top);
      } else {
        this.view.x -= event.deltaX || event.deltaY;
        this.draw();
      }
    }, { passive: false });
    c.addEventListener('pointerdown', (event) => {
      drag = { x: event.clientX, y: event.clientY, moved: false, id: event.pointerId };
    });
    c.addEventListener('pointermove', (event) => {
      if (!drag) return;
      const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
      if (!drag.moved && Math.hypot(dx, dy) < 4) return;
      if (!drag.moved) c.setPointerCapture(drag.id);
      Object.assign(drag, { x: event.clientX, y: event.clientY, moved: true });
      this.view.x += dx;
      this.view.y += dy;
      this.draw();
    });
    c.addEventListener('pointerup', (event) => {
      const moved = drag?.moved;
      drag = null;
      if (moved) return;
      const target = event.target.closest('[data-id]');
      if (target && event.target.closest('.chevron')) return this.toggle(target.dataset.id);
      this.select(target?.dataset.id ?? null);
      this.picked(target ? this.byId.get(target.dataset.id) : null);
    });
    c.addEventListener('dblclick', (event) => {
      const target = event.target.closest('[data-id]');
      if (target && !event.target.closest('.chevron')) this.toggle(target.dataset.id);
    });
    c.addEventListener('keydown', (event) => {
      const step = 60;
      const moves = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step],
                      ArrowDown: [0, -step] };
      if (moves[event.key]) {
        this.view.x += moves[event.key][0];
        this.view.y += moves[event.key][1];
        this.draw();
      } else if (event.key === '+' || event.key === '=') this.zoom(1.25);
      else if (event.key === '-') this.zoom(0.8);
      else if (event.key === '0') this.fit();
      else if (event.key === 'Enter' && this.selected) this.toggle(this.selected);
      else return;
      event.preventDefault();
    });
  }
}

function add(map, key, value) {
  if (!map.has(key)) map.set(key, new Set());
  map.get(key).add(value);
}
