// Layers: nodes of a graph without circles on lines below each other, so that edges go down and few
// cross. Edges from one node share their way past the lines between; there `bends` keep room.

// nodes: [{ w, h, isLight }], of which light ones move no others; edges: [{ from, to }], each from
// a node to a later one. Sets x and y of the nodes (of their corners) and `points` of the edges,
// between which they are straight, then bent, in turns; returns the size of the whole.
function layered(nodes, edges, gap = { x: 22, y: 34 }) {
  if (!nodes.length) return { w: 0, h: 0 };
  const rank = ranks(nodes, edges);
  const vertices = nodes.map((n, i) => ({
    w: n.w, h: n.h, isLight: n.isLight, rank: rank[i], up: [], down: [],
  }));
  const trails = nodes.map(() => []); // per node: the vertex that its edges pass, by rank
  let bends = 0;
  const link = (a, b) => {
    a.down.push(b);
    b.up.push(a);
  };
  for (const edge of edges) {
    const { from, to } = edge;
    let at = vertices[from];
    edge.path = [at];
    const long = rank[to] - rank[from];
    for (let r = rank[from] + 1; r < rank[to] && (bends < 6000 || long < 4); r++) {
      let bend = trails[from][r];
      if (!bend) {
        bend = trails[from][r] = { w: 1, h: 0, rank: r, up: [], down: [], isBend: true };
        vertices.push(bend);
        link(at, bend);
        bends++;
      }
      edge.path.push((at = bend));
    }
    edge.path.push(vertices[to]);
    link(at, vertices[to]);
  }
  const lines = [];
  for (const v of vertices) (lines[v.rank] ??= []).push(v);
  for (let r = 0; r < lines.length; r++) lines[r] ??= [];
  order(lines);
  place(lines, gap.x);
  const size = { w: 0, h: 0 };
  let left = Infinity;
  for (const v of vertices) left = Math.min(left, v.x - v.w / 2);
  for (const line of lines) {
    const high = Math.max(0, ...line.map((v) => v.h));
    const spread = new Set(line.flatMap((v) => v.down)).size;
    for (const v of line) {
      v.x -= left;
      v.top = size.h;
      v.bottom = size.h + (v.isBend ? high : v.h);
      v.below = size.h + high;
      size.w = Math.max(size.w, v.x + v.w / 2);
    }
    size.h += high + gap.y + Math.min(40, spread * 1.5);
  }
  size.h -= gap.y;
  nodes.forEach((n, i) => {
    n.x = vertices[i].x - n.w / 2;
    n.y = vertices[i].top;
  });
  routes(vertices, edges, nodes.length);
  size.h = Math.max(...nodes.map((n) => n.y + n.h));
  return size;
}

// The longest way from a start; starts stand as low as their uses allow.
function ranks(nodes, edges) {
  const rank = new Int32Array(nodes.length);
  const taken = new Uint8Array(nodes.length), first = new Int32Array(nodes.length).fill(1 << 30);
  const by = [...edges].sort((a, b) => a.to - b.to || a.from - b.from);
  for (const { from, to } of by) {
    taken[to] = 1;
    rank[to] = Math.max(rank[to], rank[from] + 1);
  }
  for (let i = by.length - 1; i >= 0; i--) {
    const { from, to } = by[i];
    first[from] = Math.min(first[from], rank[to] - 1);
  }
  for (let i = 0; i < nodes.length; i++) {
    if (!taken[i] && first[i] < 1 << 30) rank[i] = first[i];
  }
  return rank;
}

function order(lines) {
  const number = () => lines.forEach((line) => line.forEach((v, i) => (v.at = i)));
  const sorted = (line, side) => {
    for (const v of line) {
      const near = v[side];
      v.wish = near.length ? near.reduce((sum, u) => sum + u.at, 0) / near.length : v.at;
    }
    line.sort((a, b) => a.wish - b.wish || a.at - b.at);
    line.forEach((v, i) => (v.at = i));
  };
  number();
  let best = null, fewest = Infinity;
  const work = lines.reduce((n, line) => n + line.length, 0);
  for (let round = 0; round < (work > 3000 ? 4 : 10); round++) {
    if (round % 2 === 0) for (let r = 1; r < lines.length; r++) sorted(lines[r], 'up');
    else for (let r = lines.length - 2; r >= 0; r--) sorted(lines[r], 'down');
    const count = crossings(lines);
    if (count < fewest) {
      fewest = count;
      best = lines.map((line) => [...line]);
    }
  }
  best.forEach((line, r) => (lines[r] = line));
  number();
}

function crossings(lines) {
  let count = 0;
  for (const line of lines) {
    const ends = [];
    for (const v of line) ends.push(...v.down.map((u) => u.at).sort((a, b) => a - b));
    // Pairs out of order, by a tree of counts.
    const tree = new Int32Array(ends.reduce((a, b) => Math.max(a, b), 0) + 2);
    for (let i = ends.length - 1; i >= 0; i--) {
      for (let k = ends[i]; k > 0; k -= k & -k) count += tree[k];
      for (let k = ends[i] + 1; k < tree.length; k += k & -k) tree[k]++;
    }
  }
  return count;
}

// Each as near to the middle of what it is connected with as the order on its line allows.
function place(lines, gap) {
  for (const line of lines) {
    let x = 0;
    for (const v of line) {
      v.x = x + v.w / 2;
      x += v.w + gap;
    }
    for (const v of line) v.x -= x / 2;
  }
  const settle = (line, sides) => {
    const wishes = line.map((v) => {
      let sum = 0, weight = 0;
      for (const side of sides) {
        for (const u of v[side]) {
          const w = u.isLight ? 0.2 : v.isBend === u.isBend ? 6 : 1;
          sum += w * u.x;
          weight += w;
        }
      }
      return weight ? sum / weight : v.x;
    });
    apart(line, wishes, gap);
  };
  for (let round = 0; round < 8; round++) {
    for (let r = 1; r < lines.length; r++) settle(lines[r], ['up']);
    for (let r = lines.length - 2; r >= 0; r--) settle(lines[r], ['down']);
  }
  for (let r = 1; r < lines.length; r++) settle(lines[r], ['up', 'down']);
  // What is nearly straight is made so.
  for (const line of lines) {
    for (const v of line) {
      const [before] = v.up;
      if (v.isBend && before.isBend && Math.abs(before.x - v.x) < 12) v.x = before.x;
    }
  }
}

// The positions nearest to the wishes, by least squares, at which neighbours do not overlap: groups
// of those that push each other stand at the mean of their wishes.
function apart(line, wishes, gap) {
  const groups = [];
  let offset = 0;
  line.forEach((v, i) => {
    if (i) offset += (line[i - 1].w + v.w) / 2 + (v.isBend || line[i - 1].isBend ? gap / 2 : gap);
    v.offset = offset;
    const weight = v.isBend ? 0.3 : v.isLight ? 0.5 : 8;
    let group = { sum: weight * (wishes[i] - offset), weight, from: i };
    while (groups.length) {
      const before = groups[groups.length - 1];
      if (before.sum / before.weight <= group.sum / group.weight) break;
      groups.pop();
      group = {
        sum: before.sum + group.sum, weight: before.weight + group.weight, from: before.from,
      };
    }
    groups.push(group);
  });
  groups.forEach((group, k) => {
    const end = k + 1 < groups.length ? groups[k + 1].from : line.length;
    for (let i = group.from; i < end; i++) line[i].x = group.sum / group.weight + line[i].offset;
  });
}

// Where edges begin and end: side by side, in the order of where they come from.
function routes(vertices, edges, count) {
  const arriving = vertices.slice(0, count).map(() => []);
  for (const edge of edges) arriving[edge.to].push(edge);
  arriving.forEach((list, i) => {
    const v = vertices[i];
    list.sort((a, b) => a.path[a.path.length - 2].x - b.path[b.path.length - 2].x);
    const step = Math.min(14, (v.w - 24) / Math.max(1, list.length));
    list.forEach((edge, k) => (edge.end = v.x + (k - (list.length - 1) / 2) * step));
  });
  for (const edge of edges) {
    const path = edge.path, last = path.length - 1;
    edge.points = [[path[0].x, path[0].bottom], [path[0].x, path[0].below]];
    for (const v of path.slice(1, last)) edge.points.push([v.x, v.top], [v.x, v.bottom]);
    edge.points.push([edge.end, path[last].top]);
    delete edge.path;
  }
}
