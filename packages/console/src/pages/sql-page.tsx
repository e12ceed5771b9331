import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import {
  type EventProperties,
  formatCount,
  formatExact,
  getJson,
  hrefOf,
  isNumber,
  readStatements,
  rememberStatement,
  request,
} from '../base/base.ts';
import { SeriesChart, SeriesTable } from '../charts/charts.ts';
import { beginningOf, LoadState, Problem, Scrollable, saveFile, useLoad, withoutFormulas } from '../parts/parts.ts';
import { type Rows, readRows } from './rows.ts';
import { type BarChart, chartOf } from './sql-chart.ts';
import { SqlEditor } from './sql-editor.tsx';
import { SqlHelp } from './sql-help.tsx';
import { EXAMPLES } from './sql-words.ts';

const [[, EXAMPLE] = ['', '']] = EXAMPLES;

/** So many properties are shown and completed, the most frequent. */
const PROPERTIES_MAX = 50;

/** What the path of a property of an event begins with. */
const PREFIX = 'properties.';

function runStatement(sql: string, format: 'ndjson' | 'csv', signal: AbortSignal): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  return request('queries', { method: 'POST', headers, body: JSON.stringify({ sql, format }), signal });
}

/**
 * A statement in SQL, and its result. The address holds the statement, but does not run it: a link is somebody else's, and a
 * statement costs the workspace a slot.
 */
export function SqlPage({ params }: { readonly params: URLSearchParams }) {
  const sql = params.get('sql') ?? '';
  const [typed, setTyped] = useState('');
  const box = useRef<HTMLTextAreaElement>(null);
  // At once: a later effect would take away what somebody has typed by then.
  useLayoutEffect(() => setTyped(sql || EXAMPLE), [sql]);
  useLayoutEffect(() => void readStatements(), []);
  const [run, setRun] = useState({ count: 0, sql: '' });
  const properties = usePropertyNames();
  const runTyped = () => {
    rememberStatement(typed);
    setRun({ count: run.count + 1, sql: typed });
    if (typed !== sql) location.hash = hrefOf(['sql'], new URLSearchParams({ sql: typed }));
  };
  const insert = (text: string) => {
    if (!box.current) return;
    const { selectionStart, selectionEnd } = box.current;
    box.current.setRangeText(text, selectionStart, selectionEnd, 'end');
    box.current.focus();
    setTyped(box.current.value);
  };
  return (
    <>
      <h1>SQL</h1>
      <div class="sql">
        <div>
          <form
            class="filters"
            aria-label="Statement"
            onSubmit={(event) => {
              event.preventDefault();
              runTyped();
            }}
          >
            <SqlEditor value={typed} onInput={setTyped} properties={properties} box={box} />
            <div class="actions">
              <button type="submit" class="primary" aria-keyshortcuts="Control+Enter Meta+Enter">
                Run
              </button>
              <span class="muted">or press Ctrl and Enter</span>
            </div>
          </form>
          {run.sql !== '' && run.sql === sql && <Result key={run.count} sql={sql} />}
        </div>
        <SqlHelp properties={properties} onInsert={insert} />
      </div>
    </>
  );
}

/** Returns the names of properties of events. Without them, nothing else is missing. */
function usePropertyNames(): readonly string[] {
  const { data } = useLoad('properties of events', (signal) =>
    getJson<EventProperties>(`events/properties?limit=${PROPERTIES_MAX}`, signal),
  );
  return (data?.results ?? []).flatMap(({ path }) => (path.startsWith(PREFIX) ? [path.slice(PREFIX.length)] : []));
}

function Result({ sql }: { readonly sql: string }) {
  const loaded = useLoad<Rows>(sql, async (signal) => readRows(await runStatement(sql, 'ndjson', signal)));
  const { data } = loaded;
  return (
    <>
      <LoadState loaded={loaded} status={data && summaryOf(data)} />
      {data && <SqlDrawing {...data} />}
      {data && data.rows.length > 0 && <Download sql={sql} />}
      {data && data.rows.length > 0 && <ResultTable {...data} />}
    </>
  );
}

function summaryOf({ rows, isWhole }: Rows): string {
  const count = formatCount(rows.length, 'row');
  return isWhole ? `${count}.` : `The first ${count}.`;
}

/** Runs the statement again, for all of its rows. */
function Download({ sql }: { readonly sql: string }) {
  const [isRunning, setIsRunning] = useState(false);
  const [error, setError] = useState<Error>();
  const save = async () => {
    setIsRunning(true);
    setError(undefined);
    try {
      const response = await runStatement(sql, 'csv', new AbortController().signal);
      saveFile('result.csv', new Blob([withoutFormulas(await response.text())]));
    } catch (caught) {
      setError(caught as Error);
    }
    setIsRunning(false);
  };
  return (
    <>
      <button type="button" disabled={isRunning} onClick={() => void save()}>
        {isRunning ? 'Downloading …' : 'Download as CSV'}
      </button>
      {error && <Problem error={error} />}
    </>
  );
}

/** Draws a result that is a chart; nothing for any other one. */
function SqlDrawing(result: Rows) {
  const chart = chartOf(result);
  if (!chart) return null;
  if (chart.kind === 'bars') return <Bars {...chart} />;
  const { kind: _, ...series } = chart;
  const props = { ...series, timeZone: 'UTC' };
  return (
    <SeriesChart {...props} label="The result over time, in UTC">
      <SeriesTable {...props} />
    </SeriesChart>
  );
}

function Bars({ number, bars }: BarChart) {
  const most = Math.max(...bars.map(({ value }) => value)) || 1;
  return (
    <Scrollable label="Chart of the result">
      <table class="bars">
        <caption>{number}</caption>
        <tbody>
          {bars.map(({ label, value, shown }, index) => (
            <tr key={index}>
              <th scope="row">
                <bdi>{beginningOf(label)}</bdi>
              </th>
              <td>
                <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
                  <rect class="color-0" width={(100 * value) / most} height="10" />
                </svg>
              </td>
              <td class="number">{formatExact(JSON.stringify(shown))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scrollable>
  );
}

function ResultTable({ columns, rows }: Rows) {
  return (
    <Scrollable label="Result">
      <table class="numbers result">
        <caption>Result</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column} scope="col" class={classOf(rows[0]?.[column])}>
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {columns.map((column) => (
                <td key={column} class={classOf(row[column])}>
                  {textOf(row[column])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scrollable>
  );
}

function classOf(value: unknown): string | undefined {
  return isNumber(value) ? 'number' : undefined;
}

function textOf(value: unknown): string {
  if (isNumber(value)) return formatExact(JSON.stringify(value));
  return beginningOf(typeof value === 'string' ? value : JSON.stringify(value));
}
