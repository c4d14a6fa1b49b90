// The page: its parts, which of them is shown, and what they tell each other.

const HUES = {
  product: 'var(--k1)', reduction: 'var(--k2)', elementwise: 'var(--k3)', movement: 'var(--k4)',
  random: 'var(--k5)', control: 'var(--k6)',
};
const SERIES = range(8).map((i) => `var(--k${i + 1})`);
const LOW = 'var(--k4)', HEAT = 'var(--heat)';

class App {
  constructor(page, holder) {
    this.page = page;
    this.model = new Model(page);
    this.marks = new Map();
    this.colors = 'kind';
    this.build(holder);
    this.show(page.first);
    this.open(page.tab);
  }

  get stage() {
    return this.page.stages[this.at];
  }
  get root() {
    return this.model.programs[this.stage.program];
  }

  // ---- Parts

  build(holder) {
    const { page } = this;
    const isListed = (stage, k) => k === page.first || (stage.changed && !stage.hidden);
    this.stages = el('nav', { class: 'stages', 'aria-label': 'passes' },
      ...page.stages.flatMap((s, k) => (isListed(s, k) ? [el('button', {
        'data-stage': k, title: s.doc, onclick: () => this.show(k),
      }, s.name, el('small', {}, showWhole(s.ops[1])))] : [])));
    this.found = el('div', { class: 'found', hidden: true });
    this.box = el('input', {
      type: 'search', placeholder: 'Search: operation, type, line, function', id: 'search',
      'aria-label': 'search', oninput: () => this.search(this.box.value, false),
      onkeydown: (event) => {
        if (event.key === 'Enter') this.nextHit(event.shiftKey ? -1 : 1);
        if (event.key === 'Escape') this.search('');
      },
    });
    this.legend = el('div', { class: 'legend' });
    this.coloring = el('select', { id: 'colors', 'aria-label': 'colours', onchange: () => {
      this.colors = this.coloring.value;
      this.recolor();
    } }, ...Object.entries({
      kind: 'kind of operation', ns: 'time (estimate)', flops: 'flops', bytes: 'bytes moved',
      live: 'memory live', dtype: 'dtype', line: 'user function',
    }).map(([value, text]) => el('option', { value }, text)));
    this.chainBox = el('input', { type: 'checkbox', id: 'chain', onchange: () => {
      this.picture.chain = this.chainBox.checked;
      this.picture.redraw();
    } });
    const button = (text, title, onclick) =>
      el('button', { title, 'aria-label': title, onclick }, text);
    const tools = el('div', { class: 'tools' },
      el('label', {}, 'Colour by ', this.coloring),
      el('label', {}, this.chainBox, ' critical path'),
      el('span', { class: 'group' }, button('−', 'smaller', () => this.picture.zoom(0.8)),
        button('+', 'larger', () => this.picture.zoom(1.25)),
        button('Fit', 'all of it in sight', () => this.picture.fit())),
      el('span', { class: 'group' }, button('Fold all', 'fold all', () => this.picture.foldAll()),
        button('Unfold', 'unfold what is in sight', () => this.picture.unfoldMore())));
    const stageArea = el('div', { class: 'stagearea' });
    this.graphTab = el('div', { class: 'graphtab' }, stageArea, tools, this.legend);
    this.other = el('div', { class: 'other' });
    const titles = { graph: 'Graph', text: 'Text', cost: 'Cost', chain: 'Critical path',
                     memory: 'Memory', passes: 'Passes', compiled: 'Compilation' };
    if (page.shardings.length) titles.shardings = 'Shardings';
    this.tabs = el('nav', { class: 'tabs', role: 'tablist' },
      ...Object.entries(titles).map(([id, title]) => el('button', {
        role: 'tab', id: `tab-${id}`, onclick: () => this.open(id),
      }, title)));
    this.details = el('section', { class: 'details', 'aria-label': 'selection' });
    this.source = el('section', { class: 'sourcebox', 'aria-label': 'source' });
    const divider = el('div', { class: 'divider' });
    const side = el('aside', {}, this.details, this.source);
    holder.replaceChildren(
      el('header', {}, el('div', { class: 'title' }, el('h1', {}, page.title),
        el('span', {}, page.subtitle)), el('div', { class: 'search' }, this.box, this.found)),
      el('div', { class: 'bar' }, this.tabs, this.stages),
      el('main', {}, el('div', { class: 'view' }, this.graphTab, this.other), divider, side));
    this.resizing(divider, side);
    this.picture = new Picture(stageArea, this.model, {
      paint: (s) => this.paint(s), marked: (g, a, b) => this.marked(g, a, b),
      picked: (s) => this.pick(s),
    });
    document.addEventListener('keydown', (event) => {
      if (event.key === '/' && document.activeElement !== this.box) {
        event.preventDefault();
        this.box.focus();
      }
    });
    document.addEventListener('click', (event) => {
      if (!event.target.closest('.search')) this.found.hidden = true;
    });
  }

  resizing(divider, side) {
    divider.addEventListener('pointerdown', (event) => {
      divider.setPointerCapture(event.pointerId);
      divider.onpointermove = (e) => {
        side.style.width = `${Math.max(220, Math.min(innerWidth - 300, innerWidth - e.clientX))}px`;
      };
      divider.onpointerup = () => (divider.onpointermove = null);
    });
  }

  open(tab) {
    this.tab = tab;
    for (const b of this.tabs.children) b.setAttribute('aria-selected', b.id === `tab-${tab}`);
    this.graphTab.hidden = tab !== 'graph';
    this.other.hidden = tab === 'graph';
    const panels = { text: textPanel, cost: costPanel, chain: chainPanel, memory: memoryPanel,
                     passes: passesPanel, compiled: compiledPanel, shardings: shardingPanel };
    if (tab !== 'graph') this.other.replaceChildren(panels[tab](this));
    else this.picture.draw();
  }

  // Shows the program as it was after a pass.
  show(k) {
    this.at = k;
    for (const b of this.stages.children) b.classList.toggle('on', b.dataset.stage === String(k));
    this.marks.clear();
    this.markedLine = null;
    this.runs = null;
    this.picture.show(this.root);
    this.pick(null);
    this.lines = sourcePanel(this);
    this.source.replaceChildren(this.lines.node);
    this.recolor();
    if (this.tab && this.tab !== 'graph') this.open(this.tab);
  }

  // ---- Selection

  pick(s) {
    this.details.replaceChildren(...details(this, s).filter(Boolean));
    if (s?.kind !== 'node' || !isOp(s.item)) return;
    const p = this.model.place(this.model.graph(s.number), s.item.from);
    if (p.file) this.lines.mark({ file: p.file, line: p.line });
  }
  pickOp(number, op) {
    this.pick(this.picture.reveal(number, op));
  }
  reveal(number, op) {
    this.open('graph');
    this.pickOp(number, op);
  }

  // Marks the operations for which `holds`, of what the program reaches. Per graph that has some,
  // itself or in graphs that it holds, `marks` has how many there are before each operation.
  mark(holds) {
    this.marks.clear();
    this.hits = [];
    const { model } = this;
    const reached = [...model.reached(this.root).keys()];
    const counts = new Map();
    const count = (number) => {
      if (counts.has(number)) return counts.get(number);
      const g = model.graph(number), sums = new Float64Array(g.size + 1);
      for (let i = 0; i < g.size; i++) {
        sums[i + 1] = sums[i] + (holds(g, i) ? 1 : 0);
        for (const [, inner] of model.kind(g, i).graphs) sums[i + 1] += count(inner);
      }
      if (sums[g.size]) this.marks.set(number, sums);
      counts.set(number, sums[g.size]);
      return sums[g.size];
    };
    count(this.root);
    this.numHits = 0;
    for (const number of reached) {
      const g = model.graph(number);
      for (let i = 0; this.marks.has(number) && i < g.size; i++) {
        if (!holds(g, i)) continue;
        this.numHits++;
        if (this.hits.length < 100000) this.hits.push([number, i]);
      }
    }
    this.hit = -1;
    this.picture.redraw();
    if (this.tab === 'text') this.other.firstChild.draw();
  }
  // How many of the operations of a stretch are marked, with those in graphs that they hold.
  marked(number, from, to) {
    const sums = this.marks.get(number);
    return sums ? sums[to] - sums[from] : 0;
  }

  markLine(file, line) {
    this.markedLine = { file, line };
    this.lines.mark(this.markedLine);
    const wanted = new Set();
    this.model.places.forEach((p, k) => p.file === file && p.line === line && wanted.add(k));
    this.mark((g, i) => wanted.has(g.places[i]));
    this.showHits(`line ${line} of ${baseName(file)}`);
  }

  search(text, fill = true) {
    if (fill) this.box.value = text;
    const words = text.trim().toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) {
      this.found.hidden = true;
      this.mark(() => false);
      this.pick(null);
      return;
    }
    const { model } = this;
    const texts = model.kinds.map((k) =>
      `${k.name} ${k.attrs} ${k.results.map((t) => model.types[t].text).join(' ')}`.toLowerCase());
    const places = model.places.map((p) =>
      `${placeText(p)} ${p.fun} ${p.scope} ${p.of}`.toLowerCase());
    const known = new Map();
    this.mark((g, i) => {
      const key = g.kinds[i] * 2 ** 18 + g.places[i];
      let is = known.get(key);
      if (is === undefined) {
        is = words.every((w) => texts[g.kinds[i]].includes(w) || places[g.places[i]].includes(w));
        known.set(key, is);
      }
      return is;
    });
    this.showHits(`“${text.trim()}”`);
  }
  showHits(what) {
    const { hits, model } = this;
    const title = `${plural(this.numHits, 'operation')} for ${what}`;
    this.found.hidden = document.activeElement !== this.box;
    this.found.replaceChildren(
      el('p', {}, title),
      ...hits.slice(0, 60).map(([n, i], k) => {
        const g = model.graph(n), kind = model.kind(g, i);
        return el('button', { onclick: () => this.goTo(k) }, el('b', {}, kind.name), ' ',
          el('code', {}, cut(kind.results.map((t) => model.types[t].text).join(' '), 30)),
          el('span', { class: 'at' }, placeText(model.place(g, i))));
      }));
    this.details.replaceChildren(
      el('h2', {}, title),
      table([
        { title: 'operation', of: ([n, i]) => el('code', {}, model.kind(model.graph(n), i).name) },
        { title: 'result', of: ([n, i]) => el('code', {}, cut(model.kind(model.graph(n), i).results
          .map((t) => model.types[t].text).join(' '), 28)) },
        { title: 'time', of: ([n, i]) => showTime(model.kind(model.graph(n), i).ns), number: true,
          sort: ([n, i]) => model.kind(model.graph(n), i).ns },
      ], hits, { pick: ([n, i]) => this.reveal(n, i), most: 100 }));
  }
  nextHit(step) {
    if (this.hits?.length) this.goTo((this.hit + step + this.hits.length) % this.hits.length);
  }
  goTo(k) {
    this.hit = k;
    const [number, i] = this.hits[k];
    this.reveal(number, i);
  }

  // ---- Colours

  paint(s) {
    const { model } = this, g = model.graph(s.number), { from, to } = s.item;
    if (['ns', 'flops', 'bytes', 'live'].includes(this.colors)) {
      const share = this.share(g, s);
      return { color: share > 0 ? HEAT : LOW, strength: share };
    }
    const keyOf = this.keys();
    const counts = new Map();
    for (let i = from; i < to; i += Math.ceil((to - from) / 200)) {
      const key = keyOf(g, i);
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    const key = [...counts].reduce((a, b) => (b[1] > a[1] ? b : a))[0];
    return { color: this.colorOf(key), strength: isOp(s.item) ? 0.35 : 0.2 };
  }
  // Of the most that one operation has, on a scale of powers.
  share(g, s) {
    const { from, to } = s.item;
    let x;
    if (this.colors === 'live') {
      x = 0;
      for (let i = from; i < to; i++) x = Math.max(x, g.live[i]);
    } else {
      this.runs ??= this.model.runs(this.root);
      x = (g.sums[this.colors][to] - g.sums[this.colors][from]) * this.runs.get(g.number);
    }
    const root = this.model.graph(this.root);
    const most = this.colors === 'live' ? root.live[root.peak] : root.sums[this.colors][root.size];
    return x > 0 ? Math.max(0.03, 1 + Math.log10(x / most) / 4) : 0;
  }
  keys() {
    const { model } = this;
    if (this.colors === 'dtype') {
      return (g, i) => model.types[model.kind(g, i).results[0]]?.dtype ?? 'none';
    }
    if (this.colors === 'line') return (g, i) => model.place(g, i).fun || 'unknown';
    return (g, i) => model.kind(g, i).category;
  }
  colorOf(key) {
    if (this.colors === 'kind') return HUES[key];
    this.seen ??= new Map();
    if (!this.seen.has(key)) this.seen.set(key, SERIES[this.seen.size % SERIES.length]);
    return this.seen.get(key);
  }
  recolor() {
    this.seen = null;
    const keyOf = this.keys();
    const counts = new Map();
    for (const number of this.model.reached(this.root).keys()) {
      const g = this.model.graph(number);
      for (let i = 0; i < g.size; i++) {
        const key = keyOf(g, i);
        counts.set(key, (counts.get(key) ?? 0) + 1);
      }
    }
    const keys = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 8);
    const scale = ['ns', 'flops', 'bytes', 'live'].includes(this.colors);
    this.legend.replaceChildren(...(scale
      ? [el('span', { class: 'ramp' }), el('span', {}, this.colors === 'live'
        ? 'of the peak: 0.01 % to all' : 'of the program: 0.01 % to all')]
      : keys.map(([key, n]) => el('span', { class: 'key' },
        el('i', { style: `background:${this.colorOf(key)}` }), key,
        el('small', {}, showWhole(n))))));
    this.picture.redraw();
  }
}

(async () => {
  const holder = document.getElementById('app');
  try {
    const page = await unpacked(document.getElementById('data').textContent.trim());
    const app = page.flame ? new Flames(page, holder) : new App(page, holder);
    window.weft = app;
    document.documentElement.dataset.ready = Math.round(performance.now());
  } catch (error) {
    holder.textContent = `The page cannot be shown: ${error}`;
    throw error;
  }
})();
