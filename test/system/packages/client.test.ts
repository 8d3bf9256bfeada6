import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { useBuiltCli } from '../../support/cli/built-cli.js'
import { dependent } from '../../support/cli/dependent.js'
import { namedWorld, proofOf } from '../../support/client/name-proofs.js'
import { useServers } from '../../support/server/test-server.js'

// The resolver as a dependent package uses it: by name, in JavaScript and with its types.

const built = useBuiltCli()
const { folder } = useServers()

const { deployment, line, origin } = namedWorld()

const PROGRAM = `
import { deploymentOf, formatOutpoint, parseOutpoint, PROFILES, ProofError, verifyNameProof } from 'minetree/client'
const deployment = deploymentOf(PROFILES.local, {
  genesis: parseOutpoint('${formatOutpoint(deployment.genesis)}'),
  difficulty: ${deployment.difficulty},
  nameMarker: 'fake marker',
})
if (deployment === undefined) throw new Error('a genesis is given')
const proof = Uint8Array.from([${proofOf(line).join()}])
const chainTracker = 'scripts only'
const { origin, proven } = await verifyNameProof({ proof, name: 'abc', deployment, chainTracker })
let code = ''
try {
  await verifyNameProof({ proof, name: 'abd', deployment, chainTracker })
} catch (error) {
  if (error instanceof ProofError) code = error.code
}
console.log(JSON.stringify([formatOutpoint(origin), proven, code]))
`

test('a program that depends on the package checks a proof', async () => {
  const { run } = await dependent({ built: built.folder(), empty: await folder() })
  expect(JSON.parse(await run(PROGRAM))).toEqual([formatOutpoint(origin), false, 'OTHER_NAME'])
})

test('the resolver brings its types', async () => {
  const { compile } = await dependent({ built: built.folder(), empty: await folder() })
  await compile(PROGRAM)
  const wrong = PROGRAM.replace('error.code', 'error.cod')
  await expect(compile(wrong)).rejects.toMatchObject({ stdout: expect.stringContaining('cod') })
})
