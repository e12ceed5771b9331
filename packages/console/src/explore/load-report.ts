import { ApiError, type Calendar, getRecords } from '../base/base.ts';
import { faultsOf, REPORTS, type Report, reportParams } from './reports.ts';

/**
 * Loads a report.
 *
 * @throws {ApiError} as `request` does. It names the faults of the console's own parameters as well
 */
export async function loadReport<Body>(
  report: Report,
  params: URLSearchParams,
  calendar: Calendar,
  signal: AbortSignal,
): Promise<Body> {
  const faults = faultsOf(params);
  const query = reportParams(report, params, calendar, new Date());
  try {
    const body = await getRecords<Body>(`${REPORTS[report].path}?${query}`, signal);
    if (faults.length === 0) return body;
  } catch (error) {
    if (faults.length === 0 || !(error instanceof ApiError) || error.status !== 400) throw error;
    faults.push(...error.errors);
  }
  throw new ApiError(400, 'The address has parameters that cannot be used.', faults);
}
