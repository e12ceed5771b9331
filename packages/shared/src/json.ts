import { randomUUID } from 'node:crypto';

/**
 * A string of JSON, with the colon when it is a member's name. One that does not end matches up to the end of the text:
 * were it no match, every quote in it would be tried as the beginning of another, in time that grows with the square.
 */
const STRING = /"[^"\\]*(?:\\.[^"\\]*)*(?:"(\s*:)?|\\?$)/gs;

/** Begins the names that stand in for escaped ones while JSON.parse runs; nobody else can know it. */
const STAND_IN = `${randomUUID()}/`;

/**
 * JSON.parse, but right for every name. V8 takes a name that is written with an escape (`"\n"`) for one that an earlier
 * text had in the same place (`"\\"`), so that one producer's names could change another's
 * (https://github.com/nodejs/node/issues/63785). Escaped names are therefore put aside while the text is parsed.
 *
 * @throws {SyntaxError} when the text is not JSON
 * @throws {RangeError} when a text with escaped names nests too deep for the stack
 */
export function parseJson(text: string): unknown {
  if (!text.includes('\\')) return JSON.parse(text);
  const names: string[] = [];
  const plain = text.replace(STRING, (token, colon: string | undefined) => {
    if (colon === undefined || !token.includes('\\')) return token;
    names.push(JSON.parse(token.slice(0, token.length - colon.length)) as string);
    return `"${STAND_IN}${names.length - 1}"${colon}`;
  });
  if (names.length === 0) return JSON.parse(text);
  return JSON.parse(plain, (_name, value: unknown) => restoreNames(value, names));
}

function restoreNames(value: unknown, names: readonly string[]): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const members = Object.entries(value);
  if (!members.some(([name]) => name.startsWith(STAND_IN))) return value;
  const restored = {};
  for (const [name, member] of members) {
    const own = name.startsWith(STAND_IN) ? (names[Number(name.slice(STAND_IN.length))] as string) : name;
    // Not by assignment, which for __proto__ would set the prototype.
    Object.defineProperty(restored, own, { value: member, writable: true, enumerable: true, configurable: true });
  }
  return restored;
}
