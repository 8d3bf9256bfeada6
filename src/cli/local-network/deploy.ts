import type { DeploymentTerms } from '../../../backend/src/protocol/mint.js'
import { CovenantError, DEPLOYED_VERSION } from '../../mining/covenant.js'
import { ConfigError } from '../../server/config/config.js'
import type { DeployedTree } from '../../server/store/pinned-genesis.js'
import { deployTree } from '../made-up-money.js'

/**
 * Deploys a tree by the settings. Some that can be followed cannot be deployed: one of covenant version 1, or of a
 * difficulty of more than 32 bits.
 *
 * @throws ConfigError where no covenant has these terms.
 */
export function deployHere(terms: DeploymentTerms): DeployedTree {
  if (terms.covenantVersion !== DEPLOYED_VERSION)
    throw new ConfigError(`COVENANT_VERSION: new trees are deployed with version ${DEPLOYED_VERSION}`)
  try {
    return deployTree(terms)
  } catch (error) {
    if (!(error instanceof CovenantError)) throw error
    throw new ConfigError(`DIFFICULTY: no covenant has it: ${error.message}`, { cause: error })
  }
}
