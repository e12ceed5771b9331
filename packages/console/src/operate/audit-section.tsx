import { type Audits, formatNumber } from '../base/base.ts';
import { beginningOf, Command, LoadState, Scrollable, Time, type useLoad } from '../parts/parts.ts';
import { lineOfDay } from './books.ts';

/** Differences that are shown; the command lists more. */
const SHOWN = 10;

/** An operator runs it where a writer runs. */
const AUDIT = 'sluice audit';

/** Says whether all that was accepted is accounted for, and what is not. */
export function AuditSection({ loaded }: { readonly loaded: ReturnType<typeof useLoad<Audits>> }) {
  const { data } = loaded;
  return (
    <section aria-labelledby="audit">
      <h2 id="audit">Audit</h2>
      <LoadState loaded={loaded} />
      {data && (data.auditedThrough === null ? <NoAudit /> : <Audited audits={data} />)}
    </section>
  );
}

function NoAudit() {
  return (
    <>
      <p class="verdict">
        No audit has looked yet whether all that was accepted is stored. It reads, and changes nothing.
      </p>
      <Command text={AUDIT} label="The command of an audit" />
    </>
  );
}

function Audited({ audits }: { readonly audits: Audits }) {
  const line = lineOfDay(audits, Date.now());
  return (
    <>
      {line && <p class={`verdict ${line.isWell ? 'good' : 'bad'}`}>{line.text}</p>}
      {audits.auditedThrough !== null && (
        <p class="muted">
          What was received before <Time value={audits.auditedThrough} full /> is audited.
        </p>
      )}
      {audits.differences.length > 0 && <DifferenceTable differences={audits.differences} />}
    </>
  );
}

function DifferenceTable({ differences }: Pick<Audits, 'differences'>) {
  return (
    <Scrollable label="Rows that do not balance">
      <table>
        <caption>
          {differences.length > SHOWN
            ? `The first ${SHOWN} of ${formatNumber(differences.length)} rows that do not balance`
            : 'Rows that do not balance'}
        </caption>
        <thead>
          <tr>
            <th scope="col">Row</th>
            <th scope="col">What</th>
            <th scope="col">Received in the hour of</th>
            <th scope="col">Place in Kafka</th>
            <th scope="col">What was looked at</th>
          </tr>
        </thead>
        <tbody>
          {differences
            .slice(0, SHOWN)
            .map(({ auditId, hour, kind, difference, key, topic, partition, offset, line, detail }) => (
              <tr key={`${auditId} ${kind} ${difference} ${key} ${topic} ${partition} ${offset} ${line}`}>
                <th scope="row" class="verbatim">
                  {beginningOf(key)}
                </th>
                <td>{difference}</td>
                <td>
                  <Time value={hour} full />
                </td>
                <td>{offset === null ? '–' : `${topic}, partition ${partition}, offset ${offset}, line ${line}`}</td>
                <td class="verbatim">{beginningOf(detail)}</td>
              </tr>
            ))}
        </tbody>
      </table>
    </Scrollable>
  );
}
