import { setTimeout } from 'node:timers/promises'
import { HEADER_BYTES, headerCount } from '../../../backend/src/protocol/block-header.js'
import { readConfig } from '../../../src/server/config/config.js'
import { openFacts } from '../../../src/server/store/open-facts.js'
import { HeaderChain } from './header-chain.js'
import type { HeaderService } from './header-service.js'
import { type ServerProcess, startServerProcess } from './server-process.js'
import { ask, type Environment, SILENT } from './test-server.js'
import { until } from './waiting.js'

/** Two writes and a bit below the checkpoint, and ten above it, by pages of the service. */
const CHECKPOINT = 20_000
const ABOVE = 2000
const PAGE = 200
/** How many blocks each reorganisation replaces: those of a row and a bit. */
const DEPTH = 130

/**
 * Kills processes that keep their own headers while they store them: in the first bulk load, while they extend the chain
 * down to 0, and in reorganisations. After each kill, the stored chain has to be linked and to be as it was before or after a
 * write; at the end it has to be that of the service.
 *
 * @param options.env Where the store is.
 * @param options.kills How many in each of the three.
 */
export async function expectHeadersOutliveKills(options: {
  main: string
  env: Environment
  started: { url: string; service: HeaderService }
  chain: HeaderChain
  kills: number
}): Promise<void> {
  const { main, started, chain, kills } = options
  const { url, service } = started
  service.page = PAGE
  const env = {
    ...{ PORT: '0', SEED: 'none', CHAIN_TRACKER: 'headers', HEADERS_SOURCES: `junglebus=${url}` },
    ...{ HEADERS_CHECKPOINT: `${CHECKPOINT}:${chain.branch.block(CHECKPOINT)?.header.hash}` },
    ...{ HEADERS_POLL_MS: '25', CHAIN_SOURCE_RATE: '10000', ...options.env },
  }
  const running = new Set<ServerProcess>()
  const start = async (): Promise<ServerProcess> => {
    const process = await startServerProcess({ main, env })
    running.add(process)
    return process
  }

  /** Runs a process until the service has answered a question, and kills it some milliseconds later. */
  const killedAfter = async (question: (path: string) => boolean, delay: number): Promise<Stored> => {
    const asked = new Promise<void>((resolve) => {
      service.onAnswer = () => question(service.asked.at(-1) ?? '') && resolve()
    })
    const process = await start()
    await asked
    await setTimeout(delay)
    await process.kill('SIGKILL')
    service.onAnswer = undefined
    return await storedIn(env)
  }

  try {
    const branches = [chain.branch]
    let last: Stored = { from: CHECKPOINT, to: CHECKPOINT, headers: new Uint8Array(0) }
    const check = (stored: Stored): void => {
      expect(branches.some((branch) => isOf(branch, stored))).toBe(true)
      expect(stored.from).toBeLessThanOrEqual(last.from)
      expect(stored.to).toBeGreaterThanOrEqual(last.to)
      last = stored
    }
    for (let kill = 0; kill < kills; kill++) {
      let pages = 0
      const isLater = (path: string): boolean => limitOf(path) !== undefined && ++pages > 2 + 2 * kill
      check(await killedAfter(isLater, 3 * kill))
    }
    expect(last.to).toBeGreaterThan(CHECKPOINT)
    for (let kill = 0; kill < kills; kill++) {
      // The last page of what is written at once.
      const isLast = (path: string): boolean => {
        const { from = CHECKPOINT, limit = 0 } = limitOf(path) ?? {}
        return from < CHECKPOINT - 1000 && limit <= PAGE
      }
      if (last.from > 0) check(await killedAfter(isLast, 4 * kill))
    }
    for (let kill = 0; kill < kills; kill++) {
      const branch = chain.fork(chain.bestTip.height - DEPTH)
      while (branch.tip.height <= chain.bestTip.height) branch.mine()
      chain.reorg(branch)
      branches.push(branch)
      check(await killedAfter((path) => limitOf(path) !== undefined, 4 * kill))
    }
    const process = await start()
    const health = async () => {
      const { json } = await ask(process.url, '/health')
      return (json as { headers: { height?: number; hash?: string; from?: number } }).headers
    }
    const isThere = async (): Promise<boolean> => {
      const { hash, from } = await health()
      return from === 0 && hash === chain.bestTip.hash
    }
    await until(isThere, 'the headers are complete')
    chain.grow(3)
    await until(isThere, 'the tip continues')
    await process.kill('SIGKILL')
    const stored = await storedIn(env)
    expect(stored).toMatchObject({ from: 0, to: chain.bestTip.height })
    expect(isOf(chain.branch, stored)).toBe(true)
  } finally {
    for (const process of running) if (process.isRunning()) await process.kill('SIGKILL')
  }
}

/** A chain for {@link expectHeadersOutliveKills}. */
export function longHeaderChain(): HeaderChain {
  const chain = new HeaderChain(0)
  chain.grow(CHECKPOINT + ABOVE)
  return chain
}

interface Stored {
  from: number
  to: number
  headers: Uint8Array
}

/** What a store has, opened as the next process opens it. */
async function storedIn(env: Environment): Promise<Stored> {
  const stores = await openFacts(readConfig(env), { onReorg: () => {}, logger: SILENT })
  const { graph } = stores
  try {
    const { from, to } = (await graph.headers.range()) ?? { from: CHECKPOINT, to: CHECKPOINT }
    const headers = await graph.headers.read({ from, count: to - from + 1 })
    return { from, to, headers }
  } finally {
    await stores.close()
  }
}

/** Whether what is stored is a part of a branch, without gaps. Nothing may be stored yet. */
function isOf(branch: HeaderChain['branch'], { from, to, headers }: Stored): boolean {
  if (headers.length === 0) return to === from
  if (headerCount(headers) !== to - from + 1) return false
  for (const { header } of branch.blocks()) {
    if (header.height < from) return true
    const at = (header.height - from) * HEADER_BYTES
    if (header.height <= to && !Buffer.from(header.bytes).equals(headers.subarray(at, at + HEADER_BYTES)))
      return false
  }
  return from === 0
}

function limitOf(path: string): { from: number; limit: number } | undefined {
  const [, from, limit] = /\/list\/(\d+)\?limit=(\d+)$/.exec(path) ?? []
  return limit === undefined ? undefined : { from: Number(from), limit: Number(limit) }
}
