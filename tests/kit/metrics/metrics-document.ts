import { inCode } from '@sluice/shared/text/printable';
import { SERVICE_NAMES } from '../service.ts';
import { listMetrics, type MetricDescription } from './metric-list.ts';
import { OPERATOR_ADVICE } from './operator-advice.ts';

/** The comments around the part of docs/operate/metrics.md that {@link withMetrics} writes. */
const BEGIN = '<!-- metrics: npm run metrics -- --write -->';
const END = '<!-- end of metrics -->';

/** Replaces the lists of metrics in a document. @throws {Error} when the document has no place for them */
export function withMetrics(document: string): string {
  const [begin, end] = [document.indexOf(BEGIN), document.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`the document has no "${BEGIN}" before "${END}"`);
  return `${document.slice(0, begin)}${BEGIN}\n\n${metricsDocument(listMetrics())}\n${document.slice(end)}`;
}

/** Returns a list of metrics for each service, in Markdown. A metric of several services is listed once, as theirs. */
function metricsDocument(metrics: readonly MetricDescription[]): string {
  return ['HTTP', ...SERVICE_NAMES]
    .map((heading) => {
      const here = metrics.filter((metric) => headingOf(metric) === heading);
      return `## ${heading}\n\n${here.map(entryOf).join('\n')}\n`;
    })
    .join('\n');
}

function headingOf({ services: [first, second] }: MetricDescription): string | undefined {
  return second === undefined ? first : 'HTTP';
}

function entryOf({ name, type, labels, help, services, isOfServers }: MetricDescription): string {
  const advice = OPERATOR_ADVICE[name];
  if (advice === undefined)
    throw new Error(`tests/kit/metrics/operator-advice.ts does not say what to do about ${name}`);
  const facts = [
    `${type}, ${unitOf(name)}`,
    ...(labels.length > 0 ? [`by ${inCode(labels)}`] : []),
    ...(services.length > 1 ? [`of ${services.join(', ')}`] : []),
    ...(isOfServers ? ['only with several servers'] : []),
  ];
  return `- \`${name}\` (${facts.join('; ')}): ${help}\\\n  → ${advice}`;
}

/** The unit, which the name ends with as Prometheus recommends. */
function unitOf(name: string): string {
  const plain = name.replace(/_total$/, '');
  if (plain.endsWith('_timestamp_seconds')) return 'Unix time in seconds';
  if (plain.endsWith('_seconds')) return 'seconds';
  if (plain.endsWith('_bytes')) return 'bytes';
  return 'number';
}
