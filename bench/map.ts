import { parseArgs } from 'node:util'
import { walks } from './walk.js'

// What there is to know of this package, in numbers (docs/contributing.md). Run: `npm run map`.

const { values } = parseArgs({ options: { walk: { type: 'boolean' }, files: { type: 'boolean' } } })

if (values.walk === true)
  for (const [name, { files, promises, statements }] of Object.entries(await walks())) {
    const functions = [...files.values()].reduce((sum, count) => sum + count, 0)
    process.stdout.write(
      `${name}: ${files.size} files, ${functions} functions, ${promises} promises, ${statements} statements\n`,
    )
    if (values.files === true) for (const [file, count] of files) process.stdout.write(`  ${file} ${count}\n`)
  }
