/** Where ingest-api listens next to this page, unless a proxy says otherwise. */
export const INGEST_URL = `${location.protocol}//${location.hostname}:4000`;
