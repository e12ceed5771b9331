/** One message of a stream of server-sent events. */
export interface Message {
  /** The last `id` so far, `''` without one. */
  readonly id: string;
  /** `message`, unless it has another name. */
  readonly name: string;
  /** `undefined` for a message that has an `id` alone: the stream can be resumed from there. */
  readonly data: string | undefined;
}

/**
 * Returns a function that takes a stream of server-sent events in pieces, and returns the messages that a piece
 * completes. Comments are left out.
 *
 * https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
 */
export function createMessageParser(): (piece: string) => Message[] {
  let rest = '';
  let id = '';
  let hasId = false;
  let name = '';
  let data: string[] = [];
  return (piece) => {
    const messages: Message[] = [];
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines.map((text) => text.replace(/\r$/, ''))) {
      const [, field = '', value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
      if (field === 'id') {
        id = value;
        hasId = true;
      } else if (field === 'event') {
        name = value;
      } else if (field === 'data') {
        data.push(value);
      } else if (line === '') {
        const isWhole = data.length > 0;
        if (hasId || isWhole)
          messages.push({ id, name: name || 'message', data: isWhole ? data.join('\n') : undefined });
        hasId = false;
        name = '';
        data = [];
      }
    }
    return messages;
  };
}
