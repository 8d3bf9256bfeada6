import { readFileSync } from 'node:fs'
import { readdir, stat, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { type Dependent, programsIn, requiresModules } from '../../support/cli/dependent.js'
import { installedClient } from '../../support/cli/installed-package.js'
import { namedWorld } from '../../support/client/name-proofs.js'
import { beefOf } from '../../support/protocol/fake-chain.js'
import { treeOf, useServers } from '../../support/server/test-server.js'

// The package of the client as a wallet or a page has it: installed from its tarball, alone.

const servers = useServers()
const { deployment, line, origin } = namedWorld()

/** The most that it may take on disk beside the SDK, in bytes. */
const MOST = 10_000_000

const installed = await installedClient()
const withRegistry = 'missing' in installed ? describe.skip : describe

async function sizeOf(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  const sizes = await Promise.all(
    files.map(async ({ parentPath, name }) => await stat(join(parentPath, name))),
  )
  return sizes.reduce((sum, { size }) => sum + size, 0)
}

/** Resolves a name at a server, with a check in the worker of the package. */
const resolution = (url: string): string => `
const deployment = deploymentOf(PROFILES.local, {
  genesis: parseOutpoint('${formatOutpoint(deployment.genesis)}'),
  difficulty: ${deployment.difficulty},
  nameMarker: 'fake marker',
})
if (deployment === undefined) throw new Error('a genesis is given')
const chainTracker = 'scripts only'
resolveName({ name: 'abc', deployment, chainTracker, sources: ['${url}'], workers: true }).then(
  ({ origin, spendStatus }) => console.log(JSON.stringify([formatOutpoint(origin.origin), spendStatus])),
)
`
const NAMES = '{ deploymentOf, formatOutpoint, parseOutpoint, PROFILES, resolveName }'

withRegistry(
  `minetree-client from its tarball${'missing' in installed ? ` (${installed.missing})` : ''}`,
  () => {
    const modules = 'missing' in installed ? '' : join(installed.folder, 'node_modules')
    let url = ''
    let programs: Dependent
    beforeAll(async () => {
      const server = await servers.start(treeOf(deployment))
      for (const mint of line) await server.submit(beefOf(mint))
      url = server.url
      const folder = await servers.folder()
      await symlink(modules, join(folder, 'node_modules'))
      programs = await programsIn(folder)
    })

    test('installs the SDK and nothing else, and is small', async () => {
      const { packages } = JSON.parse(readFileSync(join(modules, '.package-lock.json'), 'utf8')) as {
        packages: Record<string, unknown>
      }
      expect(Object.keys(packages)).toEqual(['node_modules/@bsv/sdk', 'node_modules/minetree-client'])
      expect(await sizeOf(join(modules, 'minetree-client'))).toBeLessThan(MOST)
      const files = await readdir(join(modules, 'minetree-client'))
      expect(files.sort()).toEqual(['LICENSE', 'README.md', 'dist', 'package.json'])
    })

    test('resolves a name of a server', async () => {
      const program = `import ${NAMES} from 'minetree-client'${resolution(url)}`
      expect(JSON.parse(await programs.run(program))).toEqual([formatOutpoint(origin), 'unspent'])
    })

    const withRequire = requiresModules ? test : test.skip
    withRequire('does so for a program that requires it', async () => {
      const program = `const ${NAMES} = require('minetree-client')${resolution(url)}`
      expect(JSON.parse(await programs.run(program, 'cjs'))).toEqual([formatOutpoint(origin), 'unspent'])
    })

    test.each(['node16', 'bundler'] as const)('compiles with its types alone (%s)', async (resolution_) => {
      const program = `import ${NAMES} from 'minetree-client'${resolution(url)}
      import { payWithKey } from 'minetree-client/payments'
      import { layOut } from 'minetree-client/publish'
      console.log(payWithKey, layOut)`
      await programs.compile([program], { resolution: resolution_ })
    })
  },
)
