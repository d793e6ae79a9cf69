import { control } from "../../../../application.ts";

export const GET = control;
export const POST = control;
