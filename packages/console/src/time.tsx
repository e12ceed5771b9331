import { computed } from '@preact/signals';
import { timeZone } from './base/base.ts';

/** What a time is called in the time zone of the settings: with its date, its date alone in full, and its time alone. */
export const clocks = computed(() => {
  const zone = { timeZone: timeZone.value };
  return {
    both: new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium', ...zone }),
    date: new Intl.DateTimeFormat(undefined, { dateStyle: 'full', ...zone }),
    time: new Intl.DateTimeFormat(undefined, { timeStyle: 'medium', ...zone }),
  };
});

/** A time in the time zone of the settings; its title is UTC. */
export function Time({ value }: { readonly value: string }) {
  return (
    <time dateTime={value} title={value}>
      {clocks.value.both.format(new Date(value))}
    </time>
  );
}
