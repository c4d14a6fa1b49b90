// The page of a profile: flames, each as wide as what it takes, and the same as tables.

const FLAME_HEIGHT = 20;

class Flames {
  constructor(page, holder) {
    this.page = page;
    this.show = page.unit === 'bytes' ? showBytes : showTime;
    this.box = el('input', {
      type: 'search', id: 'search', placeholder: 'Search: a line, an operation',
      'aria-label': 'search', oninput: () => this.draw(),
    });
    this.crumbs = el('div', { class: 'crumbs' });
    this.picture = svg('svg', {});
    const columns = (first) => [
      { title: first, of: (r) => el('code', { title: r[0] }, r[0]) },
      { title: page.unit === 'bytes' ? 'bytes' : 'time', of: (r) => this.show(r[1]), number: true,
        sort: (r) => r[1] },
      { title: 'share', of: (r) => bar(r[1] / Math.max(1, page.flame.value)), sort: (r) => r[1] },
      { title: 'number', of: (r) => showWhole(r[2]), number: true, sort: (r) => r[2] },
    ];
    holder.replaceChildren(
      el('header', {}, el('div', { class: 'title' }, el('h1', {}, page.title),
        el('span', {}, page.subtitle)), el('div', { class: 'search' }, this.box)),
      el('div', { class: 'flames' }, this.crumbs, this.picture,
        ...page.tables.flatMap(({ title, rows }) => [el('h2', {}, title),
          table(columns(title.replace(/^By /, '')), rows, { sorted: 1, most: 60 })])));
    this.focus([page.flame]);
    new ResizeObserver(() => this.draw()).observe(holder);
  }

  focus(way) {
    this.way = way;
    const link = (node, k) => el('a', {
      href: '#', onclick: (e) => (e.preventDefault(), this.focus(way.slice(0, k + 1))),
    }, node.name);
    this.crumbs.replaceChildren(...way.flatMap((n, k) => (k ? [' › ', link(n, k)] : [link(n, k)])),
      ` — ${this.show(way[way.length - 1].value)}`);
    this.draw();
  }

  draw() {
    const top = this.way[this.way.length - 1], width = this.picture.clientWidth || 1000;
    const wanted = this.box.value.trim().toLowerCase();
    this.picture.replaceChildren();
    let deepest = 0;
    const paint = (node, x, depth, way) => {
      const w = (node.value / Math.max(1e-9, top.value)) * width;
      if (w < 0.6) return;
      deepest = Math.max(deepest, depth);
      const g = svg('g', {
        class: `flame${wanted && node.name.toLowerCase().includes(wanted) ? ' found' : ''}`,
        transform: `translate(${x},${depth * FLAME_HEIGHT})`,
      }, svg('title', {}, `${node.name}\n${this.show(node.value)}` +
        `, ${((100 * node.value) / Math.max(1e-9, this.page.flame.value)).toFixed(1)} %`),
      svg('rect', { width: w, height: FLAME_HEIGHT - 1, rx: 2,
                    style: `fill:color-mix(in srgb, ${hueOf(node.name)} 45%, var(--bg))` }));
      const letters = Math.floor((w - 8) / 7);
      if (letters > 2) g.append(svg('text', { x: 5, y: 14 }, cut(node.name, letters)));
      g.addEventListener('click', () => this.focus(way));
      this.picture.append(g);
      let at = x;
      for (const child of node.children ?? []) {
        paint(child, at, depth + 1, [...way, child]);
        at += (child.value / Math.max(1e-9, top.value)) * width;
      }
    };
    paint(top, 0, 0, this.way);
    this.picture.setAttribute('height', (deepest + 1) * FLAME_HEIGHT + 4);
  }
}

function hueOf(name) {
  let hash = 0;
  for (const c of name) hash = (hash * 31 + c.charCodeAt(0)) >>> 0;
  return `var(--k${1 + (hash % 8)})`;
}
