/** One message of a stream of server-sent events. */
export interface Message {
  /** The last `id` so far, `''` without one. */
  readonly id: string;
  readonly data: string;
}

/**
 * Returns a function that takes a stream of server-sent events in pieces, and returns the messages that a piece
 * completes. Comments and messages without data are left out.
 *
 * https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
 */
export function createMessageParser(): (piece: string) => Message[] {
  let rest = '';
  let id = '';
  let data: string[] = [];
  return (piece) => {
    const messages: Message[] = [];
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines.map((text) => text.replace(/\r$/, ''))) {
      const [, field = '', value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
      if (field === 'id') id = value;
      else if (field === 'data') data.push(value);
      else if (line === '') {
        if (data.length > 0) messages.push({ id, data: data.join('\n') });
        data = [];
      }
    }
    return messages;
  };
}
