import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { packageFolder } from '../../src/server/config/package-info.js'
import { DRAWINGS } from './drawings.js'

// Writes the drawings of the documentation: `npm run drawings`.

const folder = join(packageFolder(), 'docs/drawings')
await mkdir(folder, { recursive: true })
for (const [file, draw] of Object.entries(DRAWINGS)) await writeFile(join(folder, file), draw().svg())
