import {
  type DeadLetter,
  type DeadLetterPage,
  type DeadLetterReasons,
  formatBytes,
  formatCount,
  getJson,
  hrefOf,
  without,
} from '../base/base.ts';
import {
  beginningOf,
  CsvButton,
  DocumentTable,
  LoadState,
  NumberLink,
  PageLinks,
  Time,
  tableOf,
  useLoad,
} from '../parts/parts.ts';

const LIMIT = '50';

const STATES = [
  ['false', 'Waiting'],
  ['true', 'Replayed'],
  ['all', 'All'],
] as const;

/** The kinds of dead letters, as a person calls them. */
export const KINDS: Readonly<Record<string, string>> = {
  events: 'event',
  changes: 'change of a user or an organization',
  rejected: 'rejected call',
};

interface Found extends DeadLetterPage {
  /** Of the first page of all reasons. */
  readonly reasons: DeadLetterReasons | undefined;
}

/** The dead letters that match the parameters of the address: those of `GET /dead-letters`, and `replayed=all`. */
export function DeadLettersPage({ params }: { readonly params: URLSearchParams }) {
  const query = listParams(params);
  const loaded = useLoad<Found>(`${query}`, async (signal) => {
    const isFirst = !query.has('cursor') && !query.has('reason');
    const [page, reasons] = await Promise.all([
      getJson<DeadLetterPage>(`dead-letters?${query}`, signal),
      isFirst ? getJson<DeadLetterReasons>(`dead-letters/reasons?${query}`, signal) : undefined,
    ]);
    return { ...page, reasons };
  });
  const { data } = loaded;
  const isDefault = [...params].length === 0;
  const nothing = isDefault ? 'No dead letter waits to be replayed.' : 'None match.';
  const reason = params.get('reason');
  return (
    <>
      <h1>Dead letters</h1>
      <p class="muted">
        Rows of this workspace that could not be stored, and calls that could not be taken. They are kept as they came,
        and can be replayed once the reason is gone; a call can be changed and sent again.
      </p>
      <StateForm key={`${params}`} params={params} />
      {reason !== null && (
        <p class="notice">
          <span class="verbatim">{beginningOf(reason)}</span>{' '}
          <a href={hrefOf(['dead-letters'], without(params, 'reason', 'cursor'))}>All reasons</a>
        </p>
      )}
      <LoadState loaded={loaded} status={data?.results.length === 0 && nothing} scope="admin" />
      {data?.reasons && data.reasons.results.length > 0 && <ReasonTable reasons={data.reasons} params={params} />}
      {data && data.results.length > 0 && <DeadLetterTable results={data.results} params={params} />}
      <PageLinks
        path="dead-letters"
        label="Pages of dead letters"
        params={params}
        nextCursor={data?.nextCursor ?? null}
      />
      {data && data.results.length > 0 && <CsvButton name="These dead letters" table={() => tableOf(data.results)} />}
    </>
  );
}

interface ReasonTableProps {
  readonly reasons: DeadLetterReasons;
  /** Those of the address. */
  readonly params: URLSearchParams;
}

/** How many dead letters have each reason; the number opens them, and the time the newest of them. */
function ReasonTable({ reasons: { results, isWhole }, params }: ReasonTableProps) {
  const hrefOfReason = (kind: string, reason: string) => {
    const group = new URLSearchParams(params);
    group.set('kind', kind);
    group.set('reason', reason);
    return hrefOf(['dead-letters'], group);
  };
  const { hasKinds, hasClients } = usefulColumns(results, params);
  return (
    <DocumentTable
      label="Reasons"
      caption={<>Reasons, the most frequent first{!isWhole && ', of the newest 10,000'}</>}
      columns={['Reason', hasKinds && 'Kind', hasClients && 'Client', 'How many', 'Newest']}
    >
      {results.map(({ kind, client, reason, count, newestAt, newestId }) => (
        <tr key={`${kind} ${client} ${reason}`}>
          <th scope="row" class="verbatim">
            {beginningOf(reason)}
          </th>
          {hasKinds && <td>{KINDS[kind] ?? kind}</td>}
          {hasClients && <td class="text">{client}</td>}
          <td>
            <NumberLink
              value={count}
              text={formatCount(count, 'dead letter')}
              href={hrefOfReason(kind, reason)}
              opens="dead letters"
            />
          </td>
          <td>
            <a href={hrefOf(['dead-letters', newestId])}>
              <Time value={newestAt} />
            </a>
          </td>
        </tr>
      ))}
    </DocumentTable>
  );
}

/** Returns which columns say something that is not the same in each row. */
function usefulColumns(results: readonly Pick<DeadLetter, 'client'>[], params: URLSearchParams) {
  return { hasKinds: !params.has('kind'), hasClients: results.some(({ client }) => client !== null) };
}

/** Returns the parameters of the API for those of the page: those that wait, unless it says otherwise. */
function listParams(params: URLSearchParams): URLSearchParams {
  const query = without(params);
  if (!query.has('limit')) query.set('limit', LIMIT);
  if (!query.has('replayed')) query.set('replayed', 'false');
  if (query.get('replayed') === 'all') query.delete('replayed');
  return query;
}

function StateForm({ params }: { readonly params: URLSearchParams }) {
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const given = [...form].map(([name, value]) => [name, String(value)]).filter(([, value]) => value !== '');
    location.hash = hrefOf(['dead-letters'], new URLSearchParams(given));
  };
  return (
    <form class="filters" aria-label="Filters" onSubmit={submit}>
      <div class="fields">
        <label>
          State
          <select name="replayed">
            {STATES.map(([value, text]) => (
              <option key={value} value={value} selected={value === (params.get('replayed') ?? 'false')}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <label>
          Kind
          <select name="kind">
            <option value="">any</option>
            {Object.entries(KINDS).map(([value, text]) => (
              <option key={value} value={value} selected={value === params.get('kind')}>
                {text}
              </option>
            ))}
          </select>
        </label>
      </div>
      <div class="actions">
        <button type="submit" class="primary">
          Apply
        </button>
      </div>
    </form>
  );
}

interface DeadLetterTableProps {
  readonly results: readonly DeadLetter[];
  /** Those of the address. */
  readonly params: URLSearchParams;
}

function DeadLetterTable({ results, params }: DeadLetterTableProps) {
  const { hasKinds, hasClients } = usefulColumns(results, params);
  const hasReplayed = results.some(({ replayedAt }) => replayedAt !== null);
  return (
    <DocumentTable
      label="Dead letters"
      caption="Dead letters, the newest first"
      columns={[
        ...['Recorded', hasKinds && 'Kind', hasClients && 'Client', !params.has('reason') && 'Reason', 'Size'],
        hasReplayed && 'State',
      ]}
      numbers="Size"
    >
      {results.map(({ id, recordedAt, kind, client, reason, bytes, replayedAt }) => (
        <tr key={id}>
          <th scope="row">
            <a href={hrefOf(['dead-letters', id])}>
              <Time value={recordedAt} />
              <span class="hidden"> {id}</span>
            </a>
          </th>
          {hasKinds && <td>{KINDS[kind] ?? kind}</td>}
          {hasClients && <td class="text">{client}</td>}
          {!params.has('reason') && <td class="text verbatim">{beginningOf(reason)}</td>}
          <td class="number">{formatBytes(bytes)}</td>
          {hasReplayed && (
            <td>
              {replayedAt === null ? (
                'waiting'
              ) : (
                <>
                  replayed <Time value={replayedAt} />
                </>
              )}
            </td>
          )}
        </tr>
      ))}
    </DocumentTable>
  );
}
