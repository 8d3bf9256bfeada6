import { config } from 'zod/mini'

// Zod tests whether it may compile schemas. The page's content security policy forbids that, and browsers would report a
// violation. This must run before any schema is created.
config({ jitless: true })
