// Events as they are stored, to clients and to webhooks.

export { LogClock, type LogTime } from './log-clock.ts';
export { StreamHubs } from './stream-hubs.ts';
export { type EventNote, NOTE, type StreamListener } from './stream-listener.ts';
export { parseStreamRequest } from './stream-parameters.ts';
export {
  decodePosition,
  encodePosition,
  endOfBlock,
  isAtLeast,
  type StreamId,
  type StreamPosition,
} from './stream-position.ts';
export { registerStream } from './stream-route.ts';
