import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { installBoth } from '../support/cli/installed-package.js'
import { blocksOf } from '../support/docs/blocks.js'
import { Walk } from '../support/docs/walk.js'
import { useServers } from '../support/server/test-server.js'

// Does what the task pages say, one after another, as a reader does: every `sh` block, line by line, and every program that asks
// the node of the first page. Both packages are installed from their tarballs.

const { folder } = useServers()
/** For a test, in milliseconds: the packages are built and installed, and some fifteen names are mined at 12 bits. */
const PATIENCE = 900_000

/** In the order of a reader, each with something that it has to print. */
const PAGES: [page: string, prints: (string | RegExp)[]][] = [
  ['docs/start.md', [/^origin {2}[0-9a-f]{64}_2$/m, '<title>', '{"status":"ok"}']],
  ['docs/mine.md', [/^alice [0-9a-f]{64}_2$/m, /^bob /m, "'caro', 'carol'"]],
  ['docs/publish.md', ['<h1>Hello</h1>', '1 1 4 1 true']],
  ['docs/apps.md', ['"name":"home"', 'unspent']],
  ['docs/verify.md', ['is the name home', 'agreedBy: 1, of: 1', '<title>']],
]

/** Whether a program asks the node on this machine, or nobody at all. */
const canRun = (code: string): boolean => !/\.example\b/.test(code)

const cwd = await mkdtemp(join(tmpdir(), 'minetree-task-pages-'))
afterAll(() => rm(cwd, { recursive: true, force: true }))
const installed = await installBoth(cwd)
const [withRegistry, why] = 'missing' in installed ? [test.skip, ` (${installed.missing})`] : [test, '']

withRegistry(
  `the task pages can be walked, from an empty folder to a verified site${why}`,
  async () => {
    const walk = await Walk.begin({ cwd, home: await folder(), settings: { DIFFICULTY: '12' } })
    try {
      for (const [page, prints] of PAGES) {
        const printed: string[] = []
        for (const { language, code } of blocksOf(page)) {
          if (language === 'ts' && canRun(code)) printed.push(await walk.runProgram(code))
          for (const line of language === 'sh' ? code.trimEnd().split('\n') : [])
            if (line === 'npx minetree serve') await walk.serve(line, 'A local network, with names')
            else printed.push(await walk.run(line))
        }
        for (const each of prints) expect(`${page}\n${printed.join('')}`).toMatch(each)
      }
    } finally {
      await walk.end()
    }
  },
  PATIENCE,
)
