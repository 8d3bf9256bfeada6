import { fetchBounded, readJson } from '../client/bounded-fetch.js'
import { type ChainStatus, chainShape } from '../server/telemetry/chain-status.js'
import { grouped, type Progress, type ProgressLine } from './output.js'

/** How often progress is shown, in milliseconds. */
const TICK = 250
/** How long to wait for a service on this machine, in milliseconds: any later answer is not from one of ours. */
const TIMEOUT = 5000
const MAX_ANSWER_BYTES = 256 * 1024

/** How far a host has followed the chain, in words and as a share of the current sweep. */
export function followProgress({ follow, sources = [], lag }: ChainStatus): Progress {
  if (follow === undefined) return { text: 'not following the chain' }
  const { mints, transfers, sweep, state } = follow
  const requests = sources.reduce((sum, source) => sum + source.requests, 0)
  const behind = lag === undefined ? [] : [`${grouped(lag)} blocks behind`]
  const counts = `${grouped(mints)} mints, ${grouped(transfers)} transfers, ${grouped(requests)} requests`
  const asked = `${grouped(sweep.asked)} of ${grouped(sweep.coins)} coins asked about`
  return {
    text: [`${state}: ${counts}`, asked, ...behind].join('; '),
    ...(sweep.coins > 0 && { share: sweep.asked / sweep.coins }),
  }
}

/** Shows the progress of this process on a terminal while it catches up. Elsewhere the log has it. */
export function showCatchingUp(options: {
  line: ProgressLine
  status: () => ChainStatus
  signal: AbortSignal
}): void {
  const { line, status, signal } = options
  const ticking = setInterval(() => {
    const now = status()
    if (now.follow?.state === 'catching up') line.update(() => followProgress(now))
    else line.end()
  }, TICK)
  signal.addEventListener('abort', () => {
    clearInterval(ticking)
    line.end()
  })
}

/**
 * How far a running service has followed the chain.
 *
 * @param url `http://host:port` of the service.
 * @returns undefined if no such service answers at the URL, or it does not follow the chain.
 */
export async function serviceStatus(url: string, signal?: AbortSignal): Promise<ChainStatus | undefined> {
  const bounds = { timeout: TIMEOUT, maxBytes: MAX_ANSWER_BYTES, ...(signal && { signal }) }
  const answer = await fetchBounded(`${url}/health`, {}, bounds).catch(() => undefined)
  // A service that is not ready answers 503 with the same body.
  const { success, data } = chainShape.strip().safeParse(answer && readJson(answer.body))
  return success && data.follow !== undefined ? data : undefined
}
