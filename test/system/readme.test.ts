import { cp, symlink } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { blocksOf } from '../support/docs/blocks.js'
import { Walk } from '../support/docs/walk.js'
import { IS_NIGHTLY } from '../support/nightly.js'
import { useServers } from '../support/server/test-server.js'

// Runs the commands of the README exactly as written, in a copy of the checkout; only the port differs, and by day the difficulty.

const ROOT = resolve(import.meta.dirname, '../..')
const { folder } = useServers()
/** For a test, in milliseconds: it builds the package, fills a local network and mines five names, at night at 22 bits. */
const PATIENCE = 480_000

/** The README's shell blocks, each as a list of commands. */
const blocks = blocksOf('README.md')
  .filter(({ language }) => language === 'sh')
  .map(({ code }) => code.trimEnd().split('\n'))

/** A checkout that is installed. The package itself is built in it, unless it is built here from the same sources. */
async function checkout(): Promise<string> {
  const path = join(await folder(), 'minetree')
  const left = ['.git', 'node_modules', 'data', 'test', 'trials', 'bench'].map((name) => join(ROOT, name))
  await cp(ROOT, path, { recursive: true, filter: (source) => !left.includes(source) })
  await symlink(join(ROOT, 'node_modules'), join(path, 'node_modules'))
  return path
}

test(
  'a new user starts it, mines a name, resolves it, verifies it, and looks at it',
  async () => {
    const [first = []] = blocks
    const commands = blocks.find((lines) => lines.some((line) => line.includes('minetree mine')))
    expect(first).toEqual(['npm install && npm start'])
    const settings: Record<string, string> = IS_NIGHTLY ? {} : { DIFFICULTY: '12' }
    const walk = await Walk.begin({ cwd: await checkout(), home: await folder(), settings })
    // What `npm install` does after it has fetched what the package depends on.
    await walk.run('npm run prepare')
    try {
      await walk.serve('npm start', 'listening on')
      const outputs: string[] = []
      for (const line of commands ?? []) outputs.push(await walk.run(line))
      const [mined = '', resolved = '', verified = '', record = '{}', content = ''] = outputs
      const origin = mined.trim().split('\n').at(-1)?.replace('alice ', '') ?? ''
      expect(origin).toMatch(/^[0-9a-f]{64}_2$/)
      expect(resolved).toContain(`origin  ${origin}\n`)
      expect(verified).toContain(`${origin} is the name alice`)
      expect(JSON.parse(record)).toMatchObject({
        name: 'alice',
        origin,
        tip: { outpoint: origin, spent: false },
      })
      expect(content).toBe('alice')
    } finally {
      await walk.end()
    }
  },
  PATIENCE,
)
