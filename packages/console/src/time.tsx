const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

/** The browser's time zone. */
export const TIME_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** A time in the browser's zone; its title is UTC. */
export function Time({ value }: { readonly value: string }) {
  return (
    <time dateTime={value} title={value}>
      {LOCAL.format(new Date(value))}
    </time>
  );
}
