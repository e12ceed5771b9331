// EXPLAIN AST indents a line for each node, and writes names as they are: a line break in a name would end the line, and what follows
// could look like another node. With `graph = 1` the nodes have addresses, which nobody can know beforehand, and edges between them.

const NODE = /^ {4}n(\d+)\[label="(.*)$/s;
const EDGE = /^ {4}n(\d+) -> n(\d+);$/;

/**
 * Returns the nodes of a statement, the root first and each before its children, as EXPLAIN AST writes them: indented by their depth.
 * One that has a line break in a name stays one.
 *
 * @param graph the lines of `EXPLAIN AST graph = 1`
 * @returns undefined when nodes are left over, so that a name looks like one
 */
export function syntaxTree(graph: readonly string[]): string[] | undefined {
  const labels = new Map<string, string>();
  const children = new Map<string, string[]>();
  let last: string | undefined;
  for (const line of graph) {
    const [, node, label = ''] = NODE.exec(line) ?? [];
    const [, parent, child] = EDGE.exec(line) ?? [];
    if (node) {
      labels.set(node, label);
      last = node;
    } else if (parent && child) {
      // A list may have 100,000 items.
      const known = children.get(parent);
      if (known) known.push(child);
      else children.set(parent, [child]);
      last = undefined;
    } else if (last) labels.set(last, `${labels.get(last)}\n${line}`);
  }
  const tree: string[] = [];
  const rest = new Set(labels.keys());
  const left = [{ node: labels.keys().next().value ?? '', depth: 0 }];
  for (let next = left.pop(); next; next = left.pop()) {
    const { node, depth } = next;
    tree.push(`${' '.repeat(depth)}${(labels.get(node) ?? '').replace(/"\];(\n\})?$/, '')}`);
    rest.delete(node);
    for (const child of (children.get(node) ?? []).reverse()) left.push({ node: child, depth: depth + 1 });
  }
  return rest.size === 0 ? tree : undefined;
}
