import type { ComponentChildren } from 'preact';
import {
  formatAgo,
  formatBytes,
  formatDuration,
  formatNumber,
  formatShare,
  hrefOf,
  type Pipeline,
} from '../base/base.ts';
import { Command, Figure, Scrollable, Time } from '../parts/parts.ts';

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
      <h2>Writers and ClickHouse</h2>
      <Counts {...pipeline} />
      <h2>Keys and backup</h2>
      <OtherFigures keysFile={pipeline.keysFile} backup={pipeline.backup} />
      {pipeline.writers && <Command text={BACKUP} label="The command of a backup" />}
    </>
  );
}

/** An operator chooses the place: ClickHouse has to be allowed to write there. */
const BACKUP = 'sluice backup --to s3://BUCKET/sluice/$(date +%F)';

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

/** A count that should be zero. */
interface Count {
  readonly term: string;
  /** `null` where it is not known. */
  readonly count: number | null;
  readonly about: ComponentChildren;
}

function countsOf({ writers, clickHouse, erasures }: Pipeline): readonly Count[] {
  return [
    {
      term: 'Halted partitions',
      count: writers?.haltedPartitions ?? null,
      about: 'not stored from until an operator resumes them',
    },
    {
      term: 'Failed batches',
      count: writers?.batchFailures ?? null,
      about: 'attempts that were retried, since the writers started',
    },
    {
      term: 'Rows that could not be stored',
      count: writers?.deadLetters ?? null,
      about: 'of all workspaces, since the writers started; they are dead letters',
    },
    {
      term: 'Pending mutations',
      count: clickHouse?.pendingMutations ?? null,
      about: 'that are not done; erasures and migrations run as mutations',
    },
    {
      term: 'Pending erasures',
      count: erasures?.pendingUsers ?? null,
      about: erasures && (
        <>
          deleted users of all workspaces; the first has waited for {formatDuration(erasures.oldestSeconds)} of{' '}
          {formatDuration(erasures.deadlineSeconds)} at most
        </>
      ),
    },
  ];
}

/** How the writers and ClickHouse are. The counts that are zero are folded: nothing is to be seen in them. */
function Counts(pipeline: Pipeline) {
  const counts = countsOf(pipeline);
  const zeros = counts.filter(({ count }) => count === 0);
  const figureOf = ({ term, count, about }: Count) => (
    <Figure key={term} term={term} value={formatNumber(count)}>
      {about}
    </Figure>
  );
  return (
    <>
      <dl class="figures">
        {counts.filter(({ count }) => count !== 0).map(figureOf)}
        <LastBatch writers={pipeline.writers} />
        <ServerFigures servers={pipeline.servers} />
        <ClickHouseFigures clickHouse={pipeline.clickHouse} />
      </dl>
      {zeros.length > 0 && (
        <details class="zeros">
          <summary>Zero: {zeros.map(({ term }) => term.toLowerCase()).join(', ')}</summary>
          <dl class="figures">{zeros.map(figureOf)}</dl>
        </details>
      )}
    </>
  );
}

function LastBatch({ writers }: Pick<Pipeline, 'writers'>) {
  const lastStoredAt = writers?.lastStoredAt ?? null;
  if (lastStoredAt === null) return null;
  return (
    <Figure term="Last batch" value={formatAgo(Date.parse(lastStoredAt), Date.now()) ?? '–'}>
      stored at <Time value={lastStoredAt} full />
    </Figure>
  );
}

function ServerFigures({ servers }: Pick<Pipeline, 'servers'>) {
  return (
    <>
      {servers.map(({ name, readable, behindSeconds, chosen }) => (
        <Figure key={name} term={`Server ${name}`} value={readable ? (chosen ? 'read' : 'ready') : 'away'}>
          {behindSeconds === null
            ? 'how far it is behind is not known'
            : `${formatDuration(behindSeconds)} behind Kafka`}
        </Figure>
      ))}
    </>
  );
}

function ClickHouseFigures({ clickHouse }: Pick<Pipeline, 'clickHouse'>) {
  const fullest = clickHouse?.fullestPartition ?? null;
  return (
    <>
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
    </>
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
