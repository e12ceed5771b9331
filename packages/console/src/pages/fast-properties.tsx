import {
  type FastProperties,
  type FilledMonths,
  formatBytes,
  formatCount,
  formatNumber,
  formatShare,
  getJson,
  type ProposedProperties,
  sendJson,
} from '../base/base.ts';
import { ConfirmButton, DocumentTable, LoadState, Problem, Scrollable, useAction, useLoad } from '../parts/parts.ts';

/** So many properties of a workspace may be fast. */
const FAST_MAX = 16;

/** What the section shows besides the progress. */
interface Known {
  readonly fast: readonly string[];
  readonly proposed: ProposedProperties['properties'];
}

async function load(signal: AbortSignal): Promise<Known> {
  const [fast, proposed] = await Promise.all([
    getJson<FastProperties>('properties/fast', signal),
    getJson<ProposedProperties>('properties/fast/proposed', signal),
  ]);
  return { fast: fast.properties, proposed: proposed.properties };
}

async function save(properties: readonly string[], outcome: string): Promise<string> {
  const response = await sendJson('properties/fast', 'PUT', { properties });
  // A body that nobody reads keeps its connection.
  await response.arrayBuffer();
  return outcome;
}

/** Says which properties of events are fast, which would be worth it, and how far columns are filled, for everybody of the workspace. */
export function FastPropertiesSection() {
  const { count, outcome, failure, act } = useAction();
  const loaded = useLoad(`fast ${count}`, load);
  const { data } = loaded;
  const declare = (name: string) =>
    act(() => save([...(data?.fast ?? []), name], `${name} is fast for events that are stored from now on.`));
  const withdraw = (name: string) =>
    act(() => save(data?.fast.filter((one) => one !== name) ?? [], `Reports read ${name} from the text again.`));
  return (
    <section aria-labelledby="fast-properties">
      <h2 id="fast-properties">Fast properties</h2>
      <p class="muted">
        Reports that group by them, measure them or filter by them read a column in place of the text of each event: the
        answers are the same, and come sooner. Up to {FAST_MAX}, for everybody of the workspace; a key with the scope
        admin changes them.
      </p>
      <LoadState loaded={loaded} status={outcome} />
      {failure && <Problem error={failure} />}
      {data && (
        <>
          <FastTable fast={data.fast} onWithdraw={(name) => void withdraw(name)} />
          <ProposedTable {...data} onDeclare={(name) => void declare(name)} />
          {data.fast.length < FAST_MAX && <DeclareForm key={count} onDeclare={(name) => void declare(name)} />}
          {data.fast.length > 0 && <FillingProgress key={data.fast.join('\0')} />}
        </>
      )}
    </section>
  );
}

interface FastTableProps {
  readonly fast: readonly string[];
  readonly onWithdraw: (name: string) => void;
}

function FastTable({ fast, onWithdraw }: FastTableProps) {
  if (fast.length === 0) return <p>No property is fast yet.</p>;
  return (
    <DocumentTable label="Declared properties" caption="These are fast" columns={['Property', 'Withdraw']}>
      {fast.map((name) => (
        <tr key={name}>
          <th scope="row">
            <bdi>{name}</bdi>
          </th>
          <td>
            <ConfirmButton
              label="Withdraw"
              subject={name}
              question="Its reports become slower, and its columns are emptied."
              confirm="Withdraw it"
              onConfirm={() => onWithdraw(name)}
            />
          </td>
        </tr>
      ))}
    </DocumentTable>
  );
}

interface ProposedTableProps extends Known {
  readonly onDeclare: (name: string) => void;
}

function ProposedTable({ fast, proposed, onDeclare }: ProposedTableProps) {
  const others = proposed.filter(({ isFast }) => !isFast);
  if (others.length === 0) return <p>In the last seven days, reports have read no other property from the text.</p>;
  return (
    <DocumentTable
      label="Proposed properties"
      caption="Reports of the last seven days have read these from the text. Of what is fast, most of that is saved"
      columns={['Property', 'Read', 'How often', 'Make it fast']}
    >
      {others.map(({ name, bytes, reads, mayBeFast }) => (
        <tr key={name}>
          <th scope="row">
            <bdi>{name}</bdi>
          </th>
          <td class="number">{formatBytes(bytes)}</td>
          <td class="number">{formatCount(reads, 'time')}</td>
          <td>
            {!mayBeFast ? (
              `not possible${name.includes('.') ? ': its name has a dot' : ''}`
            ) : fast.length < FAST_MAX ? (
              <button type="button" onClick={() => onDeclare(name)}>
                Make it fast<span class="hidden"> {name}</span>
              </button>
            ) : (
              'withdraw another one first'
            )}
          </td>
        </tr>
      ))}
    </DocumentTable>
  );
}

function DeclareForm({ onDeclare }: Pick<ProposedTableProps, 'onDeclare'>) {
  return (
    <form
      class="bar"
      aria-label="Make a property fast"
      onSubmit={(event) => {
        event.preventDefault();
        onDeclare(String(new FormData(event.currentTarget as HTMLFormElement).get('name')));
      }}
    >
      <label>
        Another property <input name="name" required maxLength={200} autocomplete="off" spellcheck={false} />
      </label>
      <button type="submit">Make it fast</button>
    </form>
  );
}

/** How far the columns of stored events are filled. */
function FillingProgress() {
  const loaded = useLoad('filled', (signal) => getJson<FilledMonths>('properties/fast/progress', signal));
  const { data } = loaded;
  const [events, filled] = (['events', 'filled'] as const).map((name) =>
    (data?.months ?? []).reduce((sum, month) => sum + month[name], 0),
  ) as [number, number];
  const open = data?.months.filter((month) => month.filled < month.events) ?? [];
  return (
    <>
      <LoadState loaded={loaded} />
      {data && events > 0 && (
        <p>
          {filled === events
            ? 'All stored events have these columns.'
            : `${formatShare(filled / events)} of ${formatCount(events, 'event')} have these columns. Older ones get them in the background within a day or so; until then their text is read.`}
        </p>
      )}
      {open.length > 0 && (
        <Scrollable label="Months to be filled">
          <table class="numbers">
            <caption>Months that are not filled yet</caption>
            <thead>
              <tr>
                <th scope="col">Month</th>
                <th scope="col" class="number">
                  Events
                </th>
                <th scope="col" class="number">
                  Filled
                </th>
              </tr>
            </thead>
            <tbody>
              {open.map(({ month, events: all, filled: done }) => (
                <tr key={month}>
                  <th scope="row">{month}</th>
                  <td class="number">{formatNumber(all)}</td>
                  <td class="number">{formatShare(done / all)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scrollable>
      )}
    </>
  );
}
