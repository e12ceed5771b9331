interface NumberTableProps {
  readonly caption: string;
  readonly head: readonly string[];
  /** Each begins with its name. */
  readonly rows: readonly (readonly string[])[];
}

/** A name, and numbers, in each row. */
export function NumberTable({ caption, head, rows }: NumberTableProps) {
  if (rows.length === 0) return <p class="muted">There is nothing in this time.</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section class="scroll tile-table" aria-label={caption} tabIndex={0}>
      <table>
        <caption class="hidden">{caption}</caption>
        <thead>
          <tr>
            {head.map((title, index) => (
              <th key={title} scope="col" class={index === 0 ? undefined : 'number'}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(([title, ...numbers], row) => (
            <tr key={row}>
              <th scope="row">
                <bdi>{title}</bdi>
              </th>
              {numbers.map((number, index) => (
                <td key={index} class="number">
                  {number}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
