/** Control characters, formatting such as changes of the writing direction, line and paragraph separators, surrogates. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;

/**
 * Makes a text safe for a terminal, which obeys control characters: a character that is invisible, or that changes how
 * others look, is written as `\uXXXX`. JSON keeps its meaning.
 */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) =>
    [...Array(character.length).keys()]
      .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

/** Returns names as a description lists them: each in backticks, separated by commas. */
export function inCode(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(', ');
}
