import { Problem } from '@sluice/shared/http/problem';
import { callsByName, isAggregateName, isAllowedFunction, isHigherOrder } from './allowed-functions.ts';

// What a statement is, ClickHouse says itself: EXPLAIN AST parses it as it would to run it, with the values of its parameters in
// place, and returns its nodes (sql-runner.ts). Nothing here reads the text of a statement. It comes before resolved-check.ts, since
// ClickHouse evaluates constant expressions while it resolves their names.

/** The first line of one SELECT, or of several with UNION, without FORMAT, INTO OUTFILE or SETTINGS behind it. */
const ROOT = 'SelectWithUnionQuery (children 1)';

/**
 * The nodes that a SELECT may have. `ColumnsApplyTransformer` is not among them, since it does not show the function that it
 * applies, and `Set` neither, which is a SETTINGS.
 */
const NODES: ReadonlySet<string> = new Set([
  'ArrayJoin',
  'Asterisk',
  'ColumnsExceptTransformer',
  'ColumnsListMatcher',
  'ColumnsRegexpMatcher',
  'ColumnsReplaceTransformer',
  'ColumnsReplaceTransformer::Replacement',
  'ColumnsTransformerList',
  'ExpressionList',
  'Function',
  'Identifier',
  'InterpolateElement',
  'Literal',
  'OrderByElement',
  'QualifiedAsterisk',
  'QualifiedColumnsListMatcher',
  'QualifiedColumnsRegexpMatcher',
  'SampleRatio',
  'SelectIntersectExceptQuery',
  'SelectQuery',
  'SelectWithUnionQuery',
  'Subquery',
  'TableExpression',
  'TableIdentifier',
  'TableJoin',
  'TablesInSelectQuery',
  'TablesInSelectQueryElement',
  'WindowDefinition',
  'WindowListElement',
  'WithElement',
]);

/** Databases that every account can read some tables of. */
const SYSTEM = /^(system|information_schema)\./i;

const LINE = /^ *(\S+)(?: (.*))?$/s;

/** How many errors are named. */
const ERRORS_MAX = 20;

/**
 * Refuses a statement that is not one SELECT over the views, or calls or names a function that it may not.
 *
 * @param ast the nodes, as `syntaxTree` returns them
 * @throws {Problem} `invalid_sql`, naming every error
 */
export function refuseOthers(ast: readonly string[]): void {
  if (ast[0] !== ROOT) throw notAllowed(['must be one SELECT, without EXPLAIN, SETTINGS, FORMAT or INTO OUTFILE']);
  const errors = new Set(ast.flatMap((line, index) => [...errorsOf(line), ...errorsOfNames(ast, index)]));
  if (errors.size > 0) throw notAllowed([...errors]);
}

function errorsOf(line: string): string[] {
  const [, node = '', rest = ''] = LINE.exec(line) ?? [];
  if (!NODES.has(node)) return [`has something that is not allowed (${node.slice(0, 100)})`];
  const [name = ''] = rest.split(/ \((?:alias|children) /, 1);
  if (node === 'Function' && !isAllowedFunction(name))
    return [`calls the function ${shown(name)}, which is not allowed`];
  if (node === 'TableIdentifier' && name.includes('.')) return [`reads ${shown(name)}; it may read the views alone`];
  // Behind IN it may be a table.
  if (node === 'Identifier' && SYSTEM.test(name)) return [`names ${shown(name)}, which is not allowed`];
  return [];
}

/** The type of an aggregate function's state names the function. */
const STATE = 'AggregateFunction';

/** A function may be named instead of called: to a function that takes others, in a text, or as a type. */
function errorsOfNames(ast: readonly string[], index: number): string[] {
  const line = ast[index] ?? '';
  if (/^ *Literal /.test(line)) return line.includes(STATE) ? [`names the type ${STATE}, which is not allowed`] : [];
  const [, caller = ''] = /^ *Function (\w+)/.exec(line) ?? [];
  const isOfSeveral = / \(children (?!1\))\d+\)$/.test(ast[index + 1] ?? '');
  const [, node, name = ''] = LINE.exec(ast[index + 2] ?? '') ?? [];
  if (isHigherOrder(caller) && isOfSeveral && node === 'Identifier') {
    const named = name.replace(/ \(alias .*$/s, '');
    return isAllowedFunction(named)
      ? []
      : [`gives ${caller} the name ${shown(named)}, which is not allowed; a lambda is, such as x -> length(x)`];
  }
  if (callsByName(caller) && !(node === 'Literal' && isAggregateName(name.replace(/ \(alias .*$/s, ''))))
    return [`gives ${caller} something else than the name of an aggregate function that is allowed, such as 'sum'`];
  return [];
}

function shown(name: string): string {
  return name.slice(0, 100);
}

/** @param messages what the statement does, at least one */
export function notAllowed(messages: readonly string[]): Problem {
  const errors = messages.slice(0, ERRORS_MAX).map((message) => ({ path: 'sql', code: 'not_allowed', message }));
  return new Problem('invalid_sql', `The SQL is not allowed: it ${messages[0]}.`, { errors });
}
