// The limits of a request. An operator sets those of a query, of the queue and of a key: see config.ts.

/** Records of a page, unless the request says how many. */
export const LIMIT_DEFAULT = 100;

/** Records of a page at most. */
export const LIMIT_MAX = 1_000;

/** Up to where `total=capped` counts. */
export const TOTAL_CAP = 10_000;

/** Filters on properties. */
export const PROPERTY_FILTERS_MAX = 20;

/** Dots in the name of a property to filter by. Each dot doubles the number of places where the property can be. */
export const NAME_DOTS_MAX = 6;

/** Items of a list behind `[in]`. */
export const ITEMS_MAX = 100;

/** Segments that a request names, each time that it does. */
export const SEGMENTS_OF_REQUEST_MAX = 5;

/** Segments of a workspace, and the characters of a name. */
export const SEGMENTS_MAX = 100;
export const SEGMENT_NAME_CHARACTERS_MAX = 64;

/** The conditions of a segment, of all kinds together. */
export const SEGMENT_CONDITIONS_MAX = 10;

/** How often something was done, and within how many days. */
export const BEHAVIOUR_TIMES_MAX = 1_000_000;
export const BEHAVIOUR_DAYS_MAX = 36_500;

/** What a name is made of: lists of properties, the properties of each, and the characters of one. */
export const NAME_ALTERNATIVES_MAX = 5;
export const NAME_PROPERTIES_MAX = 3;
export const PROPERTY_NAME_CHARACTERS_MAX = 200;

/** Users, and organizations, that a search returns, and the characters of what it looks for. */
export const SEARCH_RESULTS_MAX = 50;
export const SEARCH_CHARACTERS_MAX = 200;

/** Buckets of a series, cohorts of retention, and intervals of books. */
export const BUCKETS_MAX = 5_000;

/** What a series can be grouped by at once. */
export const GROUP_KEYS_MAX = 2;

/** Groups of a series. */
export const GROUPS_MAX = 100;

/** Steps of a funnel. */
export const STEPS_MIN = 2;
export const STEPS_MAX = 8;

/** The longest window of a funnel, in days. */
export const WITHIN_DAYS_MAX = 36_500;

/** Intervals for which retention counts the returns to a cohort, its own among them. */
export const PERIODS_MAX = 60;

/** How long a position of the stream can be resumed, in days. */
export const RESUMABLE_DAYS = 7;
export const RESUMABLE_MS = RESUMABLE_DAYS * 86_400_000;
export const POSITION_TOO_OLD = `The position is older than ${RESUMABLE_DAYS} days. Read what you missed from GET /events, and listen again without the position.`;

/** Keys of a workspace beyond which none can be created by a request. */
export const KEYS_PER_WORKSPACE_MAX = 100;

/** The SQL of a statement, in bytes. */
export const STATEMENT_BYTES_MAX = 128 * 1_024;

/** Parameters of a statement, and the text of each, in characters. */
export const STATEMENT_PARAMS_MAX = 50;
export const PARAM_CHARACTERS_MAX = 32 * 1_024;

/** What ClickHouse plans for a statement, which its time limit does not end: SELECTs, joins, windows. */
export const SELECTS_MAX = 200;
export const JOINS_MAX = 50;
export const WINDOWS_MAX = 100;

/** Expressions in each list of a statement that has CUBE: it makes 2^n groupings of n keys. */
export const CUBE_KEYS_MAX = 12;

/** Parts of a statement with each name written out as what it stands for: nodes of its syntax tree, and columns. */
export const PLANNED_NODES_MAX = 10_000;

/** The constant list that `hasAll` and `multiSearch…` compare with, in characters. */
export const COMPARED_CHARACTERS_MAX = 4_096;

/** The parameter of `topK`, `histogram` and the like: how many values each row is compared with. */
export const GROUP_PARAMETER_MAX = 10_000;
