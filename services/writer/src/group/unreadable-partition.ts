/** Returns `undefined` for Kafka's refusal to read one partition, which says nothing about the others. @throws other errors */
export function ifUnreadable(error: unknown): undefined {
  if ((error as Error).name !== 'KafkaJSProtocolError') throw error;
  return undefined;
}
