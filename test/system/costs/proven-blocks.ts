import { listening } from '../../support/server/connections.js'
import { chainWithRoots } from '../../support/server/header-chain.js'
import { HeaderService, headersSettings } from '../../support/server/header-service.js'
import type { Environment } from '../../support/server/test-server.js'

/** The roots of the blocks that the proofs of this process lead to. */
const roots = new Map<number, string>()

/** Puts the block that a proof leads to into the chain of {@link withProvenBlocks}. */
export function confirmed<Proven extends { height: number; root: string }>(proof: Proven): Proven {
  roots.set(proof.height, proof.root)
  return proof
}

/** Runs with a service that has the headers of these blocks. `run` gets the settings of a server that follows it. */
export async function withProvenBlocks<Result>(
  run: (settings: Environment) => Promise<Result>,
): Promise<Result> {
  const chain = chainWithRoots(roots)
  const service = await listening(new HeaderService(chain).listener)
  try {
    return await run(headersSettings(chain, service.url))
  } finally {
    await service.close()
  }
}
