import { formatBytes, formatDuration, formatNumber, formatShare, hrefOf, type Pipeline } from '../base/base.ts';
import { Figure, Scrollable, Time } from '../parts/parts.ts';

/** The figures of the pipeline. One that is not known is a dash. */
export function PipelineFigures({ rate, ...pipeline }: Pipeline & { readonly rate: number | null }) {
  return (
    <>
      <h2>Events</h2>
      <dl class="figures">
        <Accepted accepted={pipeline.accepted} rate={rate} />
        <Lag lag={pipeline.lag} />
        <DeadLetters deadLetters={pipeline.deadLetters} />
      </dl>
      {pipeline.accepted && pipeline.accepted.clients.length > 0 && <Clients clients={pipeline.accepted.clients} />}
      <h2>Writers</h2>
      <WriterFigures writers={pipeline.writers} />
      <h2>ClickHouse</h2>
      {pipeline.servers.length > 0 && <ServerFigures servers={pipeline.servers} />}
      <ClickHouseFigures clickHouse={pipeline.clickHouse} erasures={pipeline.erasures} />
      <h2>Keys and backup</h2>
      <OtherFigures keysFile={pipeline.keysFile} backup={pipeline.backup} />
    </>
  );
}

function Accepted({ accepted, rate }: Pick<Pipeline, 'accepted'> & { readonly rate: number | null }) {
  const [first] = accepted?.refused ?? [];
  return (
    <Figure term="Accepted" value={formatNumber(accepted?.events ?? null)}>
      events of all workspaces since ingest-api started; {formatNumber(rate)} a second since the last reading;{' '}
      {formatNumber(accepted?.rejectedCalls ?? null)} calls rejected
      {first && (
        <>
          ; most requests were refused with {first.code}: {formatNumber(first.requests)}
        </>
      )}
    </Figure>
  );
}

/** What is rejected of the calls of each client library. */
function Clients({ clients }: Pick<NonNullable<Pipeline['accepted']>, 'clients'>) {
  return (
    <Scrollable label="Calls by client">
      <table class="totals">
        <caption>Calls of all workspaces by client, since ingest-api started</caption>
        <thead>
          <tr>
            <th scope="col">Client</th>
            <th scope="col" class="number">
              Calls
            </th>
            <th scope="col" class="number">
              Rejected
            </th>
            <th scope="col" class="number">
              Share
            </th>
            <th scope="col">Why</th>
          </tr>
        </thead>
        <tbody>
          {clients.map(({ client, calls, rejectedCalls, reasons }) => (
            <tr key={client}>
              <th scope="row">{client}</th>
              <td class="number">{formatNumber(calls)}</td>
              <td class="number">{formatNumber(rejectedCalls)}</td>
              <td class="number">{formatShare(rejectedCalls / calls)}</td>
              <td>{reasons.map(({ reason, calls }) => `${reason} ${formatNumber(calls)}`).join(', ')}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scrollable>
  );
}

function Lag({ lag }: Pick<Pipeline, 'lag'>) {
  return (
    <Figure term="Lag" value={formatNumber(lag?.messages ?? null)}>
      messages of all workspaces not stored yet, the oldest for {formatDuration(lag?.seconds ?? null)}
      {lag && lag.headroomSeconds !== null && <>; Kafka may delete it in {formatDuration(lag.headroomSeconds)}</>}
    </Figure>
  );
}

function DeadLetters({ deadLetters }: Pick<Pipeline, 'deadLetters'>) {
  return (
    <Figure term="Dead letters" value={formatNumber(deadLetters.waiting)}>
      of this workspace in 30 days not replayed; {formatNumber(deadLetters.lastDay)} in the last 24 hours
      {deadLetters.newestAt !== null && (
        <>
          , the newest at <Time value={deadLetters.newestAt} full />
        </>
      )}
      . <a href={hrefOf(['dead-letters'])}>Dead letters</a>
    </Figure>
  );
}

function WriterFigures({ writers }: Pick<Pipeline, 'writers'>) {
  const lastStoredAt = writers?.lastStoredAt ?? null;
  return (
    <dl class="figures">
      <Figure term="Halted partitions" value={formatNumber(writers?.haltedPartitions ?? null)}>
        not stored from until an operator resumes them
      </Figure>
      <Figure term="Failed batches" value={formatNumber(writers?.batchFailures ?? null)}>
        attempts that were retried, since the writers started
        {lastStoredAt !== null && (
          <>
            ; the last batch was stored at <Time value={lastStoredAt} full />
          </>
        )}
      </Figure>
      <Figure term="Rows that could not be stored" value={formatNumber(writers?.deadLetters ?? null)}>
        of all workspaces, since the writers started; they are dead letters
      </Figure>
    </dl>
  );
}

function ServerFigures({ servers }: Pick<Pipeline, 'servers'>) {
  return (
    <dl class="figures">
      {servers.map(({ name, readable, behindSeconds, chosen }) => (
        <Figure key={name} term={`Server ${name}`} value={readable ? (chosen ? 'read' : 'ready') : 'away'}>
          {behindSeconds === null
            ? 'how far it is behind is not known'
            : `${formatDuration(behindSeconds)} behind Kafka`}
        </Figure>
      ))}
    </dl>
  );
}

function ClickHouseFigures({ clickHouse, erasures }: Pick<Pipeline, 'clickHouse' | 'erasures'>) {
  const fullest = clickHouse?.fullestPartition ?? null;
  return (
    <dl class="figures">
      {clickHouse?.disks.map(({ name, freeBytes, totalBytes }) => (
        <Figure key={name} term={`Free on the disk ${name}`} value={formatBytes(freeBytes)}>
          of {formatBytes(totalBytes)}
        </Figure>
      )) ?? <Figure term="Free on disk" value={formatNumber(null)} />}
      <Figure term="Fullest partition" value={formatNumber(fullest?.parts ?? null)}>
        {fullest && (
          <>
            parts, in the table {fullest.table}; with {formatNumber(fullest.partsLimit)} inserts are refused
          </>
        )}
      </Figure>
      <Figure term="Pending mutations" value={formatNumber(clickHouse?.pendingMutations ?? null)}>
        that are not done; erasures and migrations run as mutations
      </Figure>
      <Figure term="Pending erasures" value={formatNumber(erasures?.pendingUsers ?? null)}>
        deleted users of all workspaces
        {erasures && erasures.pendingUsers > 0 && (
          <>
            ; the first has waited for {formatDuration(erasures.oldestSeconds)} of{' '}
            {formatDuration(erasures.deadlineSeconds)} at most
          </>
        )}
      </Figure>
    </dl>
  );
}

function OtherFigures({ keysFile, backup }: Pick<Pipeline, 'keysFile' | 'backup'>) {
  return (
    <dl class="figures">
      <Figure term="Keys file" value={keysFile ? (keysFile.valid ? 'valid' : 'not valid') : formatNumber(null)}>
        {keysFile && <>the keys in force were changed {formatDuration(keysFile.ageSeconds)} ago</>}
      </Figure>
      <Figure term="Without a backup for" value={formatDuration(backup?.ageSeconds ?? null)}>
        {backup ? 'since the last one, or else since the database was created' : 'not known to the writers'}
      </Figure>
    </dl>
  );
}
