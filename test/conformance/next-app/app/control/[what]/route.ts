import { control } from "../../../../merchant.ts";

export const GET = control;
export const POST = control;
