import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { readConfig } from '../../../src/server/config/config.js'
import { openNode } from '../../../src/server/node.js'
import { beefOf, FakeChain } from '../../support/protocol/fake-chain.js'
import { type Environment, SILENT, treeOf } from '../../support/server/test-server.js'
import type { Attack, RequestOf } from './attack.js'

/** Covenant code as long as the live one's. */
const LIVE_CODE_SIZE = 5892
const TOPICS = ['tm_names', 'tm_ordinals']

/** A store that is filled for an attack. */
export interface FilledStore {
  /** The settings of a server over it. */
  env: Environment
  /** 4 KiB of content, by outpoint. */
  readPath: string
  requestOf: RequestOf
}

/** Fills a store in a folder for attacks, past HTTP, which would take longer; in their order. */
export async function fillStore(attacks: readonly Attack[], folder: string): Promise<FilledStore[]> {
  const chain = new FakeChain({ codeSize: LIVE_CODE_SIZE })
  const env = { ...treeOf(chain.deployment), DATA_DIR: folder, CHAIN_TRACKER: 'scripts-only' }
  const node = await openNode({ config: readConfig(env), logger: SILENT })
  try {
    const { engine } = node.overlay
    const file = chain.inscribe({ contentType: 'text/plain', body: utf8('4 KiB'.padEnd(4096, '.')) })
    const readPath = `/content/${file.outpoint(0)}`
    await engine.submit({ beef: beefOf(file), topics: TOPICS })
    const filled: FilledStore[] = []
    for (const attack of attacks) {
      const submit = async (beef: Uint8Array): Promise<void> => {
        await engine.submit({ beef: beef, topics: TOPICS })
      }
      const requestOf = await attack.prepare({
        ...{ chain, submit },
        admit: (transaction, ancestors = []) => submit(beefOf(transaction, { with: ancestors })),
      })
      // What the store is filled with has no proofs of its chain.
      if (attack.checksProofs === true) await node.graph.settings.set('tracker', 'headers', 'scripts-only')
      filled.push({ env: { ...env, ...attack.env }, readPath, requestOf })
    }
    return filled
  } finally {
    await node.close()
  }
}
