import { Problem } from '@sluice/shared/http/problem';
import {
  COMPARED_CHARACTERS_MAX,
  CUBE_KEYS_MAX,
  GROUP_PARAMETER_MAX,
  JOINS_MAX,
  PLANNED_NODES_MAX,
  SELECTS_MAX,
  WINDOWS_MAX,
} from '../http/http.ts';
import { callsByName, isHigherOrder } from './allowed-functions.ts';

// ClickHouse plans a statement before its time limit counts, and writes out in the plan what a name stands for, each time that it
// is named: 40 names that each have the one before twice make a plan of 2^40 parts. So the size of the plan is computed first,
// from the syntax tree, and never too small: an identifier counts as all that it may stand for.

/** A node of EXPLAIN AST. */
interface Node {
  readonly kind: string;
  /** What the line has behind the kind, without the alias. */
  readonly name: string;
  readonly alias: string | undefined;
  readonly children: Node[];
}

/** The beginning of a line of EXPLAIN AST; after it comes ` NAME (alias ALIAS) (children 2)`, of which each may be missing. */
const BEGINNING = /^( *)(\S+)(?= |$)/;

const CHILDREN = / \(children \d+\)$/;

/** The tree shows names as they are, so one that has this may look like another. */
const ALIAS = '(alias ';

const VIEWS: ReadonlySet<string> = new Set(['events', 'users', 'organizations', 'identities']);

/** What is selected without being named. */
const ALL_COLUMNS = /^(Asterisk|QualifiedAsterisk|(Qualified)?Columns(List|Regexp)Matcher)$/;

/**
 * Refuses a statement that is too large to be planned.
 *
 * @param ast the lines of EXPLAIN AST
 * @param sql its text, for what the tree does not show
 * @throws {Problem} `invalid_sql`, naming each limit and the value
 */
export function refuseTooLarge(ast: readonly string[], sql: string): void {
  const messages = sizeErrors(ast, sql);
  if (messages.length === 0) return;
  const errors = messages.map((message) => ({ path: 'sql', code: 'too_large', message }));
  throw new Problem('invalid_sql', `The SQL is too large: it ${messages[0]}.`, { errors });
}

/** Returns why, as phrases that follow "it". */
function sizeErrors(ast: readonly string[], sql: string): string[] {
  if (ast.some(hasUnreadableName)) return ['has a name that looks like a part of a syntax tree'];
  const root = treeOf(ast);
  const errors: string[] = unboundedCalls(root);
  const refuse = (count: number, max: number, what: string) => {
    if (count > max) errors.push(`has ${count} ${what}; at most ${max} are allowed`);
  };
  const kinds = new Map<string, number>();
  for (const line of ast) {
    const kind = line.trimStart().split(' ', 1)[0] ?? '';
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  refuse(kinds.get('SelectQuery') ?? 0, SELECTS_MAX, 'SELECTs, with those of UNION and sub-selects');
  refuse(kinds.get('TableJoin') ?? 0, JOINS_MAX, 'joins');
  refuse(kinds.get('WindowDefinition') ?? 0, WINDOWS_MAX, 'windows');
  // The tree does not show CUBE, which makes 2^n groupings of n keys.
  if (/cube/i.test(sql)) refuse(longestList(root), CUBE_KEYS_MAX, 'expressions in a list beside CUBE');
  if (errors.length > 0) return errors;
  const size = new Measure(mayNameViews(sql)).of(root);
  if (size > PLANNED_NODES_MAX)
    errors.push(
      `is too large with each name written out as what it stands for: ${Number.isFinite(size) ? Math.round(size) : 'an endless number of'} parts; at most ${PLANNED_NODES_MAX} are allowed`,
    );
  return errors;
}

function hasUnreadableName(line: string): boolean {
  // It has no children.
  if (/^ *(Table)?Identifier .*\(children /.test(line)) return true;
  if (/^ *Literal /.test(line) || !line.includes(ALIAS)) return false;
  const { alias } = partsOf(line);
  return alias === undefined || alias.includes(ALIAS);
}

/** Reads a line of EXPLAIN AST. Literals are as long as a statement: one look from each side, and none back and forth. */
function partsOf(line: string): Omit<Node, 'children'> & { readonly indent: number } {
  const [beginning = '', indent = '', kind = ''] = BEGINNING.exec(line) ?? [];
  if (kind === '') return { indent: 0, kind, name: '', alias: undefined };
  const rest = line.slice(beginning.length).replace(CHILDREN, '');
  const aliasAt = rest.endsWith(')') ? rest.indexOf(` ${ALIAS}`) : -1;
  const name = (aliasAt < 0 ? rest : rest.slice(0, aliasAt)).slice(1);
  const alias = aliasAt < 0 ? undefined : rest.slice(aliasAt + ALIAS.length + 1, -1);
  return { indent: indent.length, kind, name, alias };
}

/** Returns the length of the longest list of a SELECT, such as that of GROUP BY. */
function longestList({ kind, children }: Node): number {
  const own = kind === 'SelectQuery' ? children.map((child) => child.children.length) : [];
  return Math.max(0, ...own, ...children.map(longestList));
}

/** Functions that compare each part of a value with each item of their last argument. */
const OF_LIST = /^(hasall|multisearch\w+)$/i;

/** Aggregate functions that compare each row with as many values as their parameter says. */
const OF_PARAMETER = /^(topk|approx_top|histogram|largesttrianglethreebuckets|lttb)/i;

/** A literal that names an aggregate function with parameters. */
const TEXT_WITH_PARAMETERS = /^'(\w+)\(([^)]*)\)'$/;

/** Returns which calls have arguments that multiply their cost. */
function unboundedCalls(node: Node): string[] {
  const errors = node.children.flatMap(unboundedCalls);
  const [list, parameters] = node.children;
  if (node.kind !== 'Function' || !list) return errors;
  const last = list.children.at(-1);
  if (OF_LIST.test(node.name) && !(last && isShortConstant(last)))
    errors.push(
      `calls ${node.name} with a list that is not a constant of at most ${COMPARED_CHARACTERS_MAX} characters`,
    );
  if (OF_PARAMETER.test(node.name) && parameters?.children.some(({ name }) => parameterOf(name) > GROUP_PARAMETER_MAX))
    errors.push(`calls ${node.name} with a parameter above ${GROUP_PARAMETER_MAX}`);
  const [named] = list.children;
  if (named?.kind === 'Identifier' && isHigherOrder(node.name) && OF_LIST.test(named.name))
    errors.push(`gives ${node.name} the name ${named.name}; give it a lambda that calls it with a constant list`);
  const [, aggregate = '', inText = ''] =
    (callsByName(node.name) && TEXT_WITH_PARAMETERS.exec(named?.name ?? '')) || [];
  if (OF_PARAMETER.test(aggregate) && inText.split(',').some((parameter) => Number(parameter) > GROUP_PARAMETER_MAX))
    errors.push(`gives ${node.name} the name ${aggregate} with a parameter above ${GROUP_PARAMETER_MAX}`);
  return errors;
}

function parameterOf(literal: string): number {
  const [, digits] = /^UInt64_(\d+)$/.exec(literal) ?? [];
  return digits === undefined ? 0 : Number(digits);
}

function isShortConstant(node: Node): boolean {
  const [characters, isConstant] = constantOf(node);
  return isConstant && characters <= COMPARED_CHARACTERS_MAX;
}

function constantOf({ kind, name, children }: Node): readonly [characters: number, isConstant: boolean] {
  const parts = children.map(constantOf);
  const isOwn =
    kind === 'Literal' || kind === 'ExpressionList' || (kind === 'Function' && /^(array|_?cast)$/i.test(name));
  return [parts.reduce((sum, [part]) => sum + part, name.length), isOwn && parts.every(([, part]) => part)];
}

function treeOf(ast: readonly string[]): Node {
  const root: Node = { kind: '', name: '', alias: undefined, children: [] };
  const path: Node[] = [root];
  for (const line of ast) {
    const { indent, ...parts } = partsOf(line);
    const node: Node = { ...parts, children: [] };
    path.length = Math.min(path.length, indent + 1);
    path.at(-1)?.children.push(node);
    path.push(node);
  }
  return root;
}

/**
 * Whether a WITH may give a name of the views to a sub-select: its names are not in the tree. Rather yes than no. The time is
 * linear in the length of the statement: between AS and the bracket are few words, such as MATERIALIZED, each after a space.
 */
export function mayNameViews(sql: string): boolean {
  if (/\\|--|#|\/\/|\/\*|\}\s*(AS\b|\()/i.test(sql)) return true;
  return /\b(events|users|organizations)["`]?\s*(\(|AS(\s+\w+){0,4}\s*\()/i.test(sql);
}

/** What is known at a place of the tree. */
interface Scope {
  readonly outer: Scope | undefined;
  /** What an alias of this SELECT may stand for. */
  readonly aliases: Map<string, Node[]>;
  /** The parameters of a lambda. */
  readonly bound?: ReadonlySet<string>;
}

interface Size {
  readonly parts: number;
  readonly columns: number;
}

/** The widest view. */
const VIEW: Size = { parts: 12, columns: 12 };

/** Computes the size of a tree with all names written out. */
class Measure {
  readonly #viewsAreNamed: boolean;
  readonly #sizes = new Map<Node, number>();
  readonly #underWay = new Set<Node>();
  /** The largest of the sub-selects that a WITH has named so far: a name of a table may be any of them. */
  #largest: Size = { parts: 1, columns: 1 };

  constructor(viewsAreNamed: boolean) {
    this.#viewsAreNamed = viewsAreNamed;
  }

  of(root: Node): number {
    return this.#size(root, { outer: undefined, aliases: new Map() });
  }

  #size(node: Node, scope: Scope): number {
    switch (node.kind) {
      case 'SelectQuery':
        return this.#select(node, scope);
      case 'WithElement':
        return this.#named(node, scope);
      case 'TableIdentifier':
        return 1 + this.#table(node).parts;
      case 'Identifier':
        return 1 + this.#identifier(node.name, scope);
      case 'Function':
        return this.#function(node, scope);
      default:
        return 1 + this.#sum(node.children, scope);
    }
  }

  #sum(nodes: readonly Node[], scope: Scope): number {
    return nodes.reduce((sum, node) => sum + this.#size(node, scope), 0);
  }

  #select(node: Node, outer: Scope): number {
    const scope: Scope = { outer, aliases: new Map() };
    const largestAround = this.#largest;
    for (const child of node.children) collectAliases(child, scope.aliases, false);
    // Where a name is defined, the names before it are known.
    const [names, rest] = [node.children.filter(hasNames), node.children.filter((child) => !hasNames(child))];
    const parts = this.#sum(names, scope) + this.#sum(rest, scope);
    const columns = this.#columns(node);
    // What it has named is known inside of it alone.
    this.#largest = largestAround;
    return 1 + parts + columns;
  }

  #named(node: Node, scope: Scope): number {
    const parts = 1 + this.#sum(node.children, scope);
    const columns = this.#columns(node);
    this.#largest = {
      parts: Math.max(this.#largest.parts, parts),
      columns: Math.max(this.#largest.columns, columns),
    };
    return parts;
  }

  #table({ name }: Node): Size {
    if (!VIEWS.has(name)) return this.#largest;
    const { parts, columns } = this.#viewsAreNamed ? this.#largest : VIEW;
    return { parts: Math.max(parts, VIEW.parts), columns: Math.max(columns, VIEW.columns) };
  }

  /** How many columns a node returns, at most. */
  #columns(node: Node): number {
    if (node.kind === 'TableIdentifier') return this.#table(node).columns;
    if (node.kind !== 'SelectQuery') return node.children.reduce((sum, child) => sum + this.#columns(child), 0);
    const tables = node.children
      .filter(({ kind }) => kind === 'TablesInSelectQuery')
      .reduce((sum, child) => sum + this.#columns(child), 0);
    const selected = node.children.filter(({ kind }) => kind === 'ExpressionList').flatMap(({ children }) => children);
    return selected.reduce((sum, { kind }) => sum + (ALL_COLUMNS.test(kind) ? Math.max(tables, 1) : 1), 0);
  }

  /** An alias of the SELECT itself, or of one around it; else a column. */
  #identifier(name: string, scope: Scope): number {
    const beginning = name.split('.', 1)[0] ?? name;
    for (let at: Scope | undefined = scope; at; at = at.outer) {
      if (at.bound?.has(beginning)) return 0;
      const found = at.aliases.get(name) ?? at.aliases.get(beginning);
      if (found) return Math.max(...found.map((node) => this.#aliased(node, at)));
    }
    return 0;
  }

  #aliased(node: Node, scope: Scope): number {
    // In its own definition a name is that of a column; through another one it has no end.
    if (this.#underWay.has(node)) return [...this.#underWay].at(-1) === node ? 0 : Number.POSITIVE_INFINITY;
    const known = this.#sizes.get(node);
    if (known !== undefined) return known;
    this.#underWay.add(node);
    const size = this.#size(node, scope);
    this.#underWay.delete(node);
    this.#sizes.set(node, size);
    return size;
  }

  #function(node: Node, scope: Scope): number {
    if (node.name === 'lambda') return this.#lambda(node, scope);
    // A name of a lambda may be called, with its arguments in all places of them.
    const called = this.#identifier(node.name, scope);
    const own = 1 + this.#sum(node.children, scope);
    return called === 0 ? own : own * called;
  }

  #lambda(node: Node, scope: Scope): number {
    const [parameters, ...body] = node.children[0]?.children ?? [];
    const bound = new Set<string>();
    for (const { name } of parameters?.children.flatMap((list) => [list, ...list.children]) ?? []) bound.add(name);
    return 1 + this.#sum(body, { outer: scope, aliases: new Map(), bound });
  }
}

function hasNames({ children }: Node): boolean {
  return children.some(({ kind }) => kind === 'WithElement');
}

/** Collects the aliases of expressions of a SELECT: not those of tables, nor those of its sub-selects. */
function collectAliases(node: Node, aliases: Map<string, Node[]>, isTable: boolean): void {
  if (node.kind === 'SelectQuery' || node.kind === 'WithElement') return;
  if (node.alias !== undefined && !isTable) aliases.set(node.alias, [...(aliases.get(node.alias) ?? []), node]);
  for (const child of node.children) collectAliases(child, aliases, node.kind === 'TableExpression');
}
