import { computed, signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import { formatAgo, formatNumber, hrefOf, timeZone } from '../base/base.ts';
import { type EntityPath, nameOfEntity } from './names.ts';

/** What a time is called in the time zone of the settings: with its date, its date alone in full, and its time alone. */
export const clocks = computed(() => {
  const zone = { timeZone: timeZone.value };
  return {
    both: new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium', ...zone }),
    date: new Intl.DateTimeFormat(undefined, { dateStyle: 'full', ...zone }),
    time: new Intl.DateTimeFormat(undefined, { timeStyle: 'medium', ...zone }),
  };
});

/** What was ago is said anew so often, in milliseconds. */
const AGO_EVERY_MS = 30_000;

const ticks = signal(0);

/** Lets times that are said by how long ago they were grow older. */
export function followTime(): void {
  setInterval(() => {
    ticks.value += 1;
  }, AGO_EVERY_MS);
}

interface TimeProps {
  readonly value: string;
  /** Whether a time of the last week is said in full, too, in place of how long ago it was. Default: no. */
  readonly full?: boolean;
}

/** A time in the time zone of the settings, one of the last week by how long ago it was; its title is the time in full, and in UTC. */
export function Time({ value, full = false }: TimeProps) {
  void ticks.value;
  const time = new Date(value);
  const text = clocks.value.both.format(time);
  return (
    <time dateTime={value} title={`${text} (${value})`}>
      {(!full && formatAgo(time.getTime(), Date.now())) || text}
    </time>
  );
}

interface ScrollableProps {
  readonly label: string;
  readonly kind?: 'properties';
  readonly children: ComponentChildren;
}

/** A region of a page that scrolls by itself where its content is wider. */
export function Scrollable({ label, kind, children }: ScrollableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section class={kind ? `scroll ${kind}` : 'scroll'} aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}

interface FigureProps {
  readonly term: string;
  readonly value: string;
  readonly children?: ComponentChildren;
}

/** A figure with its name and what it means, in a list of figures. */
export function Figure({ term, value, children }: FigureProps) {
  return (
    <div>
      <dt>{term}</dt>
      <dd class="figure">{value}</dd>
      <dd class="muted">{children}</dd>
    </div>
  );
}

interface NumberLinkProps {
  readonly value: number | null;
  /** The text that is shown in its place. Default: the number. */
  readonly text?: string;
  /** The address that shows what the number counts. */
  readonly href: string | undefined;
  /** What the address shows, in the plural. Default: events. */
  readonly opens?: string;
}

/** A number that opens what it counts. Nothing is behind a zero. */
export function NumberLink({ value, text = formatNumber(value), href, opens = 'events' }: NumberLinkProps) {
  if (value === null || value === 0 || href === undefined) return <>{text}</>;
  return (
    <a class="number-link" href={href} title={`${formatNumber(value)}: open the ${opens}`}>
      {text}
    </a>
  );
}

interface EntityProps {
  readonly path: EntityPath;
  readonly id: string;
}

/** A user or an organization, which leads to its page. */
export function EntityLink({ path, id }: EntityProps) {
  return (
    <a href={hrefOf([path, id])}>
      <EntityName path={path} id={id} />
    </a>
  );
}

/** The name of a user or an organization, or else the e-mail address, with the identifier in grey; each in the direction of its script. */
export function EntityName({ path, id }: EntityProps) {
  const { name = null, email = null } = nameOfEntity(path, id) ?? {};
  const called = name ?? email;
  if (called === null || called === id) return <bdi>{id}</bdi>;
  return (
    <>
      <bdi title={email ?? undefined}>{called}</bdi> <bdi class="identifier">{id}</bdi>
    </>
  );
}

/** The beginning of some properties in a line: each with its name. */
export function PropertyLine({ properties }: { readonly properties: Readonly<Record<string, unknown>> }) {
  const shown = useMemo(() => propertyLine(properties), [properties]);
  return (
    <>
      {shown.map(([name, text], index) => (
        <span key={name}>
          {index > 0 && ' · '}
          <span class="muted">{name}</span> <bdi>{text}</bdi>
        </span>
      ))}
    </>
  );
}

/** The beginning of the value of one property; nothing where it is missing. */
export function PropertyText({ value }: { readonly value: unknown }) {
  return value === undefined ? null : <bdi>{textOfValue(value)}</bdi>;
}

/** A text as it is, anything else as JSON. */
function textOfValue(value: unknown): string {
  return beginningOf(typeof value === 'string' ? value : JSON.stringify(value));
}

/** Returns the names of the first properties and the beginnings of their values: a text as it is, anything else as JSON. */
export function propertyLine(properties: Readonly<Record<string, unknown>>): [name: string, text: string][] {
  const line: [name: string, text: string][] = [];
  let length = 0;
  for (const [name, value] of Object.entries(properties)) {
    const text = textOfValue(value);
    line.push([beginningOf(name), text]);
    length += name.length + text.length;
    if (length > SHOWN_MAX) break;
  }
  return line;
}

/** How much of a value a cell shows, in characters. */
const SHOWN_MAX = 1_000;

/** Returns a text, or the beginning of a long one. */
export function beginningOf(text: string): string {
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)} …` : text;
}
