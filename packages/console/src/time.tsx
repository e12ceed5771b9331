import { computed } from '@preact/signals';
import { timeZone } from './current-settings.ts';

const clock = computed(
  () => new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium', timeZone: timeZone.value }),
);

/** A time in the time zone of the settings; its title is UTC. */
export function Time({ value }: { readonly value: string }) {
  return (
    <time dateTime={value} title={value}>
      {clock.value.format(new Date(value))}
    </time>
  );
}
