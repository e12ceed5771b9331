/** Returns a text of a compose file, where `${NAME:-default}` is the value that is given for NAME, or else its default. */
export function resolveVariables(text: string, given: Readonly<Record<string, string>> = {}): string {
  // A default may hold another one.
  const inner = text.replace(/\$\{([A-Z_]+):-([^${}]*)\}/g, (_, variable, otherwise) => given[variable] ?? otherwise);
  return inner === text ? text : resolveVariables(inner, given);
}
