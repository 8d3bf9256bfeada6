import type { DeploymentTerms } from '../../../backend/src/protocol/mint.js'
import { CovenantError } from '../../mining/covenant.js'
import { ConfigError } from '../../server/config.js'
import type { DeployedTree } from '../../server/followed-tree.js'
import { deployTree } from '../made-up-money.js'

/**
 * Deploys a tree by the settings. Of the terms that a covenant can be built for, the difficulty alone can be set to what
 * it is not: a tree of 33 bits may be followed, but not be deployed.
 *
 * @throws ConfigError where no covenant has these terms.
 */
export function deployHere(terms: DeploymentTerms): DeployedTree {
  try {
    return deployTree(terms)
  } catch (error) {
    if (!(error instanceof CovenantError)) throw error
    throw new ConfigError(`DIFFICULTY: no covenant has it: ${error.message}`, { cause: error })
  }
}
