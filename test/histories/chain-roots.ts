import type { Block } from '../../backend/src/graph/records.js'
import { PROFILES } from '../../backend/src/protocol/profile.js'
import type { Verdict } from '../../src/chain/headers/header-chain.js'
import { GivenHeaders } from '../../src/chain/tracker/given-headers.js'
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
    ARC_CALLBACK_TOKEN: ADMIN_TOKEN,
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
export class HeadersOfChain extends GivenHeaders {
  constructor(private readonly asked: { chain: ChainRoots } = { chain: new HeaderChain() }) {
    const tracker = {
      isValidRootForHeight: async (root: string, height: number) => asked.chain.rootAt(height) === root,
      currentHeight: async () => asked.chain.bestTip.height,
    }
    super(tracker, 60_000)
  }

  get chain(): ChainRoots {
    return this.asked.chain
  }

  set chain(chain: ChainRoots) {
    this.asked.chain = chain
  }

  override async verdict({ height, root }: Block): Promise<Verdict> {
    return this.chain.rootAt(height) === root ? 'yes' : 'no'
  }
}
