import { type ServerProcess, startServerProcess } from '../../test/support/server/server-process.js'
import type { Environment } from '../../test/support/server/test-server.js'
import { exchange } from './exchange.js'
import { judge } from './judge.js'
import { submit } from './request.js'
import type { World } from './world.js'

/** The token in inputs of the operator's. */
export const ADMIN_TOKEN = 'the-token-of-a-fuzzed-operator'
/** Inputs need not be large to meet these limits, and one client may ask as fast as it can. */
const SETTINGS = {
  MAX_BODY_BYTES: String(2 * 1024 * 1024),
  MAX_CONTENT_BYTES: String(1024 * 1024),
  READS_PER_MINUTE: '0',
  SUBMISSIONS_PER_MINUTE: '0',
  // Otherwise, an address that sends input which takes long to parse would be refused for a while, with everything else from it.
  MAX_CLIENT_CONNECTIONS: '0',
  ADMIN_TOKEN,
}

/**
 * The compiled server, following the tree of the network that inputs are made of.
 *
 * @param options.env Further settings.
 */
export async function startHost(options: {
  main: string
  dataDir: string
  world: World
  env?: Environment
  onLine?: (line: string) => void
}): Promise<ServerProcess> {
  const { main, dataDir, world, onLine } = options
  const env: Environment = {
    ...{ PORT: '0', DATA_DIR: dataDir, SEED: 'none', ...SETTINGS, ...world.settings },
    ...options.env,
  }
  return await startServerProcess({ main, env, ...(onLine && { onLine }) })
}

/** Submits the network; all of it must be accepted. */
export async function fillHost({ url }: ServerProcess, { filling }: World): Promise<void> {
  for (const { beef, topics } of filling) {
    const request = submit(beef, topics)
    const { statuses, complaints } = judge(request, await exchange(url, request, { patience: 60_000 }))
    if (statuses[0] !== 200)
      throw new Error(`the host took a good submission with ${statuses}: ${complaints}`)
  }
}
