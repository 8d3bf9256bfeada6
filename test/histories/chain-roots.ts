import type { ChainTracker } from '@bsv/sdk'
import type { Block } from '../../backend/src/graph/records.js'
import { PROFILES } from '../../backend/src/protocol/profile.js'
import type { Verdict } from '../../src/chain/headers/header-chain.js'
import { HeadersSource } from '../../src/chain/tracker/headers-source.js'
import { type Config, readConfig } from '../../src/server/config/config.js'
import { CONTENT_TYPES } from '../support/graph/said-outputs.js'
import { FakeChain } from '../support/protocol/fake-chain.js'
import { HeaderChain } from '../support/server/header-chain.js'
import { treeOf } from '../support/server/test-server.js'
import type { Shape } from './history.js'
import { ADMIN_TOKEN } from './host.js'

const TYPES = [...CONTENT_TYPES, PROFILES.local.nameContentType]

/** The settings of a host for histories of a shape. */
export function configOf({ covenantVersion, refusedTypes = [] }: Shape, dataDir: string): Config {
  const { deployment } = new FakeChain({ difficulty: 1, covenantVersion })
  return readConfig({
    ...treeOf(deployment),
    DATA_DIR: dataDir,
    ADMIN_TOKEN,
    READS_PER_MINUTE: '0',
    SUBMISSIONS_PER_MINUTE: '0',
    ...(refusedTypes.length > 0 && {
      CONTENT_TYPES: TYPES.filter((type) => !refusedTypes.includes(type)).join(),
    }),
  })
}

/** What a host asks of a chain. */
export interface ChainRoots {
  rootAt(height: number): string | undefined
  readonly bestTip: { readonly height: number }
}

/** The headers of a chain, asked without a network. */
export class HeadersOfChain extends HeadersSource implements ChainTracker {
  chain: ChainRoots = new HeaderChain()

  constructor() {
    // Nothing is asked there: all questions are answered below.
    super({ chainTracker: 'http://plain.invalid', chainTrackerTimeoutMs: 0, network: 'main' })
  }

  override async verdict({ height, root }: Block): Promise<Verdict> {
    return this.chain.rootAt(height) === root ? 'yes' : 'no'
  }

  override async isValidRootForHeight(root: string, height: number): Promise<boolean> {
    return this.chain.rootAt(height) === root
  }

  override async currentHeight(): Promise<number> {
    return this.chain.bestTip.height
  }
}
