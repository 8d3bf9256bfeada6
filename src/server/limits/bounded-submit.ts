import { NotReadyError } from '../../gateway/error-response.js'
import type { Submit } from '../submit.js'
import type { Limits } from './limits.js'

/** As many submissions wait as may. It is this host that is busy, not the client that asks too much: so 503, and not 429. */
class BusyError extends NotReadyError {
  override readonly headers = { 'Retry-After': '5' }

  constructor(waiting: number) {
    super(`${waiting} submissions wait already; try again`)
  }
}

/**
 * Bounds how many submissions are under way and wait for their turn, and how many bytes of memory their bodies hold. One
 * alone is always taken, however large.
 */
export function boundedSubmit(
  submit: Submit,
  { maxSubmissions, maxSubmissionBytes }: Pick<Limits, 'maxSubmissions' | 'maxSubmissionBytes'>,
): Submit {
  let count = 0
  let bytes = 0
  return async (submitted) => {
    const { length } = submitted.beef
    if (count >= maxSubmissions || (count > 0 && bytes + length > maxSubmissionBytes))
      throw new BusyError(count)
    count++
    bytes += length
    try {
      return await submit(submitted)
    } finally {
      count--
      bytes -= length
    }
  }
}
