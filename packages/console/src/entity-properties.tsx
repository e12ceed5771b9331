import { Leaf } from './events/events.ts';
import { Time } from './parts/parts.ts';

interface EntityPropertiesProps {
  readonly properties: Readonly<Record<string, unknown>>;
  /** When each was set last. */
  readonly setAt: Readonly<Record<string, string>>;
}

/** The properties of a user or an organization. */
export function EntityProperties({ properties, setAt }: EntityPropertiesProps) {
  const entries = Object.entries(properties);
  if (entries.length === 0) return <p class="muted">It has no properties.</p>;
  const times = new Map(Object.entries(setAt));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section class="scroll properties" aria-label="Properties" tabIndex={0}>
      <table class="totals">
        <caption>Properties</caption>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Value</th>
            <th scope="col">Set last</th>
          </tr>
        </thead>
        <tbody>
          {entries.map(([name, value]) => {
            const time = times.get(name);
            return (
              <tr key={name}>
                <th scope="row">
                  <bdi>{name}</bdi>
                </th>
                <td>
                  <Leaf value={value} />
                </td>
                <td>{time !== undefined && <Time value={time} />}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}
