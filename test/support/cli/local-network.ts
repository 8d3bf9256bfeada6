import { Writable } from 'node:stream'
import { deployTree } from '../../../src/cli/fake-transactions.js'
import type { LocalNetwork } from '../../../src/cli/local-network/fill.js'
import { MiningProgress } from '../../../src/cli/mining-progress.js'
import { HttpMineIndex } from '../../../src/mining/mine-index.js'
import { readConfig } from '../../../src/server/config/config.js'
import { openNode } from '../../../src/server/node.js'
import {
  type Environment,
  SILENT,
  type StartOptions,
  type TestServer,
  type useServers,
} from '../server/test-server.js'

/** A server, in this process, whose store has got a tree of its own, and nothing else. */
export async function emptyLocalNetwork(
  { folder, start }: ReturnType<typeof useServers>,
  env: Environment = {},
  options: StartOptions = {},
): Promise<TestServer> {
  const settings = { DATA_DIR: await folder(), DIFFICULTY: '4', ...env }
  const node = await openNode({ config: readConfig(settings), logger: SILENT, deploy: deployTree })
  await node.close()
  return await start(settings, options)
}

/** That network, to be filled; what is said of it is left unread. */
export function networkOf({ node, url }: TestServer, more: Partial<LocalNetwork> = {}): LocalNetwork {
  const { deployment } = node.config
  if (deployment === undefined) throw new Error('this server follows no tree')
  const unread = new Writable({ write: (_chunk, _encoding, done) => done() })
  return {
    deployment,
    graph: node.graph,
    index: new HttpMineIndex({ url }),
    submit: node.overlay.engine.submit,
    progress: new MiningProgress(unread),
    signal: new AbortController().signal,
    workers: 0,
    ...more,
  }
}
