/** Control characters, formats such as changes of the writing direction, line and paragraph separators, surrogates. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;

/**
 * A text as it may be shown on a terminal, which obeys control characters: each character that is not to be seen, or
 * changes how others are seen, is written as `\uXXXX`. JSON stays JSON, with the same meaning.
 */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) =>
    [...Array(character.length).keys()]
      .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}
